package integration

import (
	"flag"
	"testing"
	"time"
)

var attackLong = flag.Bool("attack", false, "the tests named TestAttack run their long forms")

// attackRow logs a row of the table that make attack prints. The delay is the longest by which the
// attack has delayed a job.
func attackRow(t *testing.T, attack string, hosts int, delay time.Duration, outcome string) {
	t.Helper()
	form := "short"
	if *attackLong {
		form = "long"
	}
	t.Logf("| %s | %d | %s | %.2f s | %s |", attack, hosts, form, delay.Seconds(), outcome)
}
