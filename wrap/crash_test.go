package wrap

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// agentThatCrashes keeps the trace of its crash in the file that argEnv names.
var agentThatCrashes = role("agent that crashes", func() {
	fd, err := unix.MemfdCreate("trace", unix.MFD_CLOEXEC)
	if err != nil {
		fmt.Println(err)
	}
	trace := os.NewFile(uintptr(fd), "trace")
	if err := debug.SetCrashOutput(trace, debug.CrashOptions{}); err != nil {
		fmt.Println(err)
	}
	_, err = Run(context.Background(), Tree{
		Workers: []Worker{child(ignoringSignals)},
		Crash:   Crash{Trace: trace, Path: os.Getenv(argEnv), Stderr: os.Stdout, Line: "crashed\n"},
	})
	fmt.Println("returned", err)
})

// TestAgentCrashes: the watchdog keeps the trace of a crash and says so. If it cannot make the file
// it prints the trace. An agent that is killed leaves nothing.
func TestAgentCrashes(t *testing.T) {
	nothingLeft(t)
	for _, c := range []struct {
		signal       syscall.Signal
		name         string
		printed, has string
	}{
		{syscall.SIGSEGV, "trace", "crashed", "SIGSEGV: segmentation violation"},
		{syscall.SIGABRT, "trace", "crashed", "SIGABRT: abort"},
		{syscall.SIGABRT, "none/trace", "SIGABRT: abort", ""},
		{syscall.SIGKILL, "trace", "", ""},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		out, l := lines(t)
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = []string{
			roleEnv + "=" + agentThatCrashes, markerEnv + "=" + marker(t), argEnv + "=" + path,
		}
		cmd.Stdout = out
		startMarked(t, cmd)
		l.want("ready")
		if err := cmd.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		if c.printed != "" {
			l.want(c.printed)
		}
		cmd.Wait()
		eventually(t, "all have ended", func() bool { return len(marked(marker(t))) == 0 })
		text, err := os.ReadFile(path)
		if (err == nil) != (c.has != "") || !strings.HasPrefix(string(text), c.has) {
			t.Errorf("%v, %s: the trace is %.60q, %v; want %q", c.signal, c.name, text, err, c.has)
		}
	}
}
