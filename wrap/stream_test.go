package wrap

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStreamOfSignals sends SIGUSR1 to the agent at 25 Hz, as a profiler or a monitoring script
// may, and SIGTERM in between: each signal has its own deadline.
func TestStreamOfSignals(t *testing.T) {
	nothingLeft(t)
	cmd, l := startListener(t, nil)
	agent := cmd.Process.Pid
	tick := time.NewTicker(40 * time.Millisecond)
	defer tick.Stop()
	const before, after = 10, 50 // 0.4 s and 2 s
	for sent := 0; sent < before+after; {
		select {
		case <-tick.C:
			if sent == before {
				syscall.Kill(agent, syscall.SIGTERM)
			}
			syscall.Kill(agent, syscall.SIGUSR1)
			sent++
		case line := <-l.lines:
			if strings.HasPrefix(line, "agent: 15 ") {
				return
			}
		}
	}
	t.Fatalf("SIGTERM was not reported while %d SIGUSR1 followed it at 25 Hz", after)
}
