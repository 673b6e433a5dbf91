package integration

import (
	"strings"
	"testing"
	"time"
)

// A job that is stopped by Ctrl-Z for longer than --stall-timeout has not stalled when it goes on.
func TestStoppedJobHasNotStalled(t *testing.T) {
	t.Parallel()
	term := newTerminal(t)
	line := rdzvExec([]string{"--stall-timeout", "4s", "--tag", "--nproc-per-node", "2"},
		[]string{"sh", "-c", `for i in 1 2 3; do echo "step $i"; sleep 2; done`})
	term.typeAndWait(quoted(line)+"; echo code=$?\n", "step 1")
	term.typeAndWait("\x1a", "Stopped")
	time.Sleep(6 * time.Second)
	term.typeAndWait("fg\n", "step 3", shellPrompt)
	term.mu.Lock()
	defer term.mu.Unlock()
	if strings.Contains(term.screen, "stalled") {
		t.Errorf("the terminal shows\n%s", term.screen)
	}
}
