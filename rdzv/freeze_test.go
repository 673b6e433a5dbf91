package rdzv

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdzv/rdzv/presence"
)

// frozenJob asks the test binary to be a whole job, see beFrozen.
const frozenJob = "RDZV_TEST_FROZEN_JOB"

func TestMain(m *testing.M) {
	if os.Getenv(frozenJob) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	os.Exit(m.Run())
}

// A job that is stopped as a whole, by scontrol suspend or a laptop's lid, goes on
// when it is continued: its silence is nobody's.
func TestAJobThatIsStoppedGoesOn(t *testing.T) {
	t.Parallel()
	if os.Getenv(frozenJob) != "" {
		beFrozen(t)
		return
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), frozenJob+"=1")
	// A stopped process in a group that becomes orphaned brings SIGHUP to all of the group: it gets one of its own.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.HasSuffix(lines.Text(), "running") {
		fmt.Fprintln(&said, lines.Text())
	}
	signal(t, c, syscall.SIGSTOP)
	waitForState(t, c.Process.Pid, "T")
	awaitSilence(t, presence.MinTimeout+presence.MinTimeout/2) // means nothing to who is stopped
	signal(t, c, syscall.SIGCONT)
	fmt.Fprintln(stdin, "settle")
	stdin.Close()
	for lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the job that was stopped: %v\n%s", err, &said)
	}
}

// awaitSilence returns when an agent that runs would take a peer for lost that it last heard now.
func awaitSilence(t *testing.T, timeout time.Duration) {
	t.Helper()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	if _, err := presence.LimitSilence(ours, timeout).Read(make([]byte, 1)); err != presence.ErrSilent {
		t.Fatalf("silence ended with: %v", err)
	}
}

func signal(t *testing.T, c *exec.Cmd, s syscall.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// waitForState waits until the kernel says of a process what it is in.
func waitForState(t *testing.T, pid int, state string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if _, after, _ := strings.Cut(string(b), ") "); strings.HasPrefix(after, state) {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("process %d is not in state %s: %s", pid, state, b)
		}
	}
}

// beFrozen is a job of three agents that is stopped at work, and then ends well.
func beFrozen(t *testing.T) {
	j := startWith(t, LeaderConfig{Agents: 3}, presence.MinTimeout)
	sessions := j.agents(3)
	j.worlds(sessions)
	fmt.Println("running")
	io.Copy(io.Discard, os.Stdin)
	awaitSilence(t, presence.MinTimeout) // by now a loss would be known
	for i, s := range sessions {
		if s.Context().Err() != nil {
			t.Errorf("agent %d: %v", i, context.Cause(s.Context()))
		}
	}
	for i, sum := range j.finish(sessions, succeeded) {
		if sum.Verdict == nil || sum.Verdict.Kind != Done {
			t.Errorf("agent %d: %v", i, sum.Verdict)
		}
	}
}

// An agent whose node is unplugged at work: its connection stands, and is silent.
func TestAFrozenAgentIsLost(t *testing.T) {
	t.Parallel()
	j := startWith(t, LeaderConfig{Agents: 3}, presence.MinTimeout)
	sessions := j.agents(3)
	j.worlds(sessions)
	j.freeze("agent-1")
	wantLost(t, j.ended(sessions[0]), "the agent of rank 1 (pid 1001 on node1)")
	if cause := j.ended(sessions[1]); cause != ErrStoreLost {
		t.Errorf("the agent that was unplugged: %v", cause)
	}
	rest := []*Session{sessions[0], sessions[2]}
	for i, sum := range j.finish(rest, func(i int) Worker { return stopped(2 * i) }) {
		if sum.Verdict.Kind != Lost || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
}
