package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/internal/proctest"
	"rdzv/rdzv/agent"
)

// Every exit code of a worker is the job's, by one worker and by the second of two.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	var lines [][]string
	codes := []int{0, 1, 2, 3, 77, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 137, 143, 254, 255} // all 256: see integration
	for _, code := range codes {
		lines = append(lines, []string{"exec", "--", "sh", "-c", fmt.Sprintf("exit %d", code)})
	}
	for i, c := range calls(t, nil, lines) {
		code := codes[i]
		if c.err != nil || c.code != code {
			t.Errorf("a worker that exits %d ends the job with %d, %v", code, c.code, c.err)
		}
		if said := fmt.Sprintf("rank 0 failed first: exit %d ", code); (code != 0) != strings.Contains(c.stderr, said) {
			t.Errorf("of a worker that exits %d is said: %q", code, c.stderr)
		}
	}
	script := `test $RANK = 1 && exit 9; exec sleep 100`
	if _, _, got := called(t, nil, "exec", "--nproc-per-node", "2", "--", "sh", "-c", script); got != 9 {
		t.Errorf("rank 1 exits 9, and the job ends with %d", got)
	}
}

// A signal that ends a worker is 128 and its number.
func TestSignalCodes(t *testing.T) {
	proctest.CatchIgnored()
	t.Parallel()
	signals := []syscall.Signal{1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13, 14, 15, 24, 31, 34, 64}
	var lines [][]string
	for _, s := range signals {
		lines = append(lines, []string{"exec", "--", "sh", "-c", fmt.Sprintf("ulimit -c 0; kill -%d $$; sleep 100", s)})
	}
	for i, c := range calls(t, nil, lines) {
		s := signals[i]
		if c.err != nil || c.code != agent.CodeSignal+int(s) {
			t.Errorf("a worker that dies of %v ends the job with %d, %v", s, c.code, c.err)
		}
		if !strings.Contains(c.stderr, "rank 0 failed first: killed by "+console.SignalName(int(s))) {
			t.Errorf("of a worker that dies of %v is said: %q", s, c.stderr)
		}
	}
}

// The environment that a worker gets is larger than rdzv's own. Where it is too
// large for the kernel, that is told.
func TestHugeEnvironment(t *testing.T) {
	t.Parallel()
	// A large one passes through whole.
	large := strings.Repeat("x", 100_000)
	var env []string
	for i := range 8 {
		env = append(env, fmt.Sprintf("LARGE_%d=%s", i, large))
	}
	stdout, stderr, code := called(t, env, "exec", "--", "sh", "-c", `printf %s "$LARGE_7" | wc -c`)
	if strings.TrimSpace(stdout) != "100000" || code != 0 {
		t.Errorf("a variable of 100000 bytes arrives with %q, code %d, %q", stdout, code, stderr)
	}

	// The largest that rdzv itself can be started with is too large for a worker.
	code, stderr = largest(t)
	if code != 126 || !strings.Contains(stderr, `/true": argument list too long`) {
		t.Errorf("an environment that is too large for a worker: code %d, %q", code, stderr)
	}
}

// largest runs exec with the largest environment that the kernel lets it have,
// within 256 bytes.
func largest(t *testing.T) (code int, stderr string) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &limit); err != nil {
		t.Fatal(err)
	}
	most := int(min(limit.Cur/4, 6<<20)) // execve(2): a quarter of the stack, 3/4 of 8 MiB at most
	dir := t.TempDir()
	for size := most; size > most/2; size -= 256 {
		cmd := exec.CommandContext(t.Context(), "rdzv", "exec", "--", "true")
		cmd.Env = append(filled(size), "PATH="+os.Getenv("PATH"), "HOME="+dir, "TMPDIR="+dir, "GORACE="+noRaceNap)
		var errs strings.Builder
		cmd.Stderr = &errs
		if err := cmd.Run(); cmd.ProcessState == nil {
			if !strings.Contains(err.Error(), "argument list too long") {
				t.Fatal(err)
			}
			continue
		}
		return cmd.ProcessState.ExitCode(), errs.String()
	}
	t.Fatal("rdzv starts with no environment, however small")
	return 0, ""
}

// filled is an environment of about size bytes, in strings that the kernel takes.
func filled(size int) (env []string) {
	const most = 100_000
	for i := 0; size > 0; i++ {
		n := min(size, most)
		env = append(env, fmt.Sprintf("FILL_%d=%s", i, strings.Repeat("x", n)))
		size -= n
	}
	return env
}
