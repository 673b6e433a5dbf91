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

// suspendedJob makes the test binary run a complete job, see runSuspendedJob.
const suspendedJob = "RDZV_TEST_SUSPENDED_JOB"

func TestMain(m *testing.M) {
	if os.Getenv(suspendedJob) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	os.Exit(m.Run())
}

// A job that is suspended as a whole, by scontrol suspend or by closing a laptop, continues when
// it is resumed: no agent is regarded as silent.
func TestSuspendedJobContinues(t *testing.T) {
	t.Parallel()
	if os.Getenv(suspendedJob) != "" {
		runSuspendedJob(t)
		return
	}
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), suspendedJob+"=1")
	// Its own process group, because the kernel sends SIGHUP to an orphaned process group that
	// has a stopped process.
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
	var output strings.Builder
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.HasSuffix(lines.Text(), "running") {
		fmt.Fprintln(&output, lines.Text())
	}
	signal(t, c, syscall.SIGSTOP)
	waitForState(t, c.Process.Pid, "T")
	awaitSilence(t, presence.MinTimeout+presence.MinTimeout/2) // which the stopped process must not count
	signal(t, c, syscall.SIGCONT)
	fmt.Fprintln(stdin, "settle")
	stdin.Close()
	for lines.Scan() {
		fmt.Fprintln(&output, lines.Text())
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the suspended job: %v\n%s", err, &output)
	}
}

// awaitSilence returns when a running agent would regard a peer as lost whose last packet came now.
func awaitSilence(t *testing.T, timeout time.Duration) {
	t.Helper()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	if _, err := presence.LimitSilence(ours, timeout).Read(make([]byte, 1)); err != presence.ErrSilent {
		t.Fatalf("reading from a silent peer: %v", err)
	}
}

func signal(t *testing.T, c *exec.Cmd, s syscall.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// waitForState waits until a process is in a state, such as T.
func waitForState(t *testing.T, pid int, state string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
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

// runSuspendedJob runs a job of three agents that is suspended between "running" and the end of stdin.
func runSuspendedJob(t *testing.T) {
	j := startWith(t, LeaderConfig{Agents: 3}, presence.MinTimeout)
	sessions := j.agents(3)
	j.worlds(sessions)
	fmt.Println("running")
	io.Copy(io.Discard, os.Stdin)
	awaitSilence(t, presence.MinTimeout) // a loss would be detected by now
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

// The node of an agent is unplugged: the connection stays open without any packets.
func TestUnreachableAgentIsLost(t *testing.T) {
	t.Parallel()
	j := startWith(t, LeaderConfig{Agents: 3}, presence.MinTimeout)
	sessions := j.agents(3)
	j.worlds(sessions)
	j.freeze("agent-1")
	wantLost(t, j.ended(sessions[0]), "the agent of rank 1 (pid 1001 on node1)")
	if cause := j.ended(sessions[1]); cause != ErrStoreLost {
		t.Errorf("the unplugged agent: %v", cause)
	}
	rest := []*Session{sessions[0], sessions[2]}
	for i, sum := range j.finish(rest, func(i int) Worker { return stopped(2 * i) }) {
		if sum.Verdict.Kind != Lost || !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
}
