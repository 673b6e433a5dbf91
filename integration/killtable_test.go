package integration

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A killResult is a row of the table of TestKillMatrix.
type killResult struct {
	killed, launcher string
	hosts            int

	// until the last worker or descendant, the last of rdzv's processes, and the launcher ended
	workers, all, returned time.Duration

	survivors int
	codes     []int // of the surviving agents
	commands  []int // of the commands that the user has started
}

// A killTable has the rows of all cases, sorted.
type killTable struct {
	mu   sync.Mutex
	rows []killResult
}

func (t *killTable) add(r killResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, r)
}

func (t *killTable) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %-8s %5s %9s %9s %9s %9s  %-20s %s\n", "killed", "launcher", "hosts",
		"workers", "rdzv", "launcher", "survivors", "agents' codes", "commands' codes")
	slices.SortFunc(t.rows, func(a, b killResult) int {
		return strings.Compare(
			fmt.Sprint(a.killed, a.hosts, a.launcher), fmt.Sprint(b.killed, b.hosts, b.launcher))
	})
	for _, r := range t.rows {
		fmt.Fprintf(&b, "%-16s %-8s %5d %9s %9s %9s %9d  %-20s %v\n", r.killed, r.launcher, r.hosts,
			ms(r.workers), ms(r.all), ms(r.returned), r.survivors, fmt.Sprint(r.codes), r.commands)
	}
	return b.String()
}

func ms(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
