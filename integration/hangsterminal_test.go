package integration

import (
	"strings"
	"testing"
	"time"
)

// A job that is stopped by Ctrl-Z for longer than --stall-timeout has not stalled when it goes on.
//
// The program is bash: dash 0.5.12 starts programs with vfork(2), and while its child is stopped
// before execve(2) dash itself cannot be, so that the job goes on (37 of 1,500 signals).
func TestStoppedJobHasNotStalled(t *testing.T) {
	t.Parallel()
	term := newTerminal(t)
	line := rdzvExec([]string{"--stall-timeout", "4s", "--tag", "--nproc-per-node", "2"},
		[]string{"bash", "-c", `for i in 1 2 3; do echo "step $i"; sleep 2; done`})
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
