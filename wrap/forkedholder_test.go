//go:build !execholder

package wrap

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"rdzv/internal/procfs"
)

// TestSignalsAtStart: a SIGTERM to the holder as soon as it exists changes nothing. Without a fork it
// may die of one while Go starts.
func TestSignalsAtStart(t *testing.T) {
	nothingLeft(t)
	sent := 0
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		var hunt sync.WaitGroup
		hunt.Go(func() {
			for signalled := false; ctx.Err() == nil && !signalled; {
				children, _ := procfs.Children(procfs.System, os.Getpid())
				for _, pid := range children {
					if syscall.Kill(pid, syscall.SIGTERM) == nil {
						signalled = true
						sent++
					}
				}
			}
		})
		results, err := Run(t.Context(), Tree{Workers: []Worker{sh(t, "exit 3")}})
		cancel()
		hunt.Wait()
		if err != nil || results[0].Code != 3 {
			t.Errorf("Run = %+v, %v, want Code 3 and no error", results, err)
		}
	}
	if sent == 0 {
		t.Error("no signal was sent")
	}
}

// TestGroupSignal: the signal that killed a worker was sent to every process, or not.
// Without a fork the holder may learn about the signal after the end of the worker.
func TestGroupSignal(t *testing.T) {
	everyone := func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, modeEnv+"=everyone") }
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1} {
		t.Run(s.String(), func(t *testing.T) {
			nothingLeft(t)
			cmd, l := startListener(t, func(cmd *exec.Cmd) {
				cmd.Env[2] = argEnv + "=echo ready; exec sleep 1000"
				everyone(cmd)
			})
			holder := holderOf(t, cmd.Process.Pid)
			workers, _ := procfs.Children(procfs.System, holder)
			for _, pid := range append([]int{cmd.Process.Pid, holder}, workers...) {
				syscall.Kill(pid, s)
			}
			l.inAnyOrder(fmt.Sprintf("agent: %d shared=true", int(s)),
				fmt.Sprintf("ended %d group signal %d <nil>", 128+int(s), int(s)))
		})
	}
	t.Run("not to everyone", func(t *testing.T) {
		nothingLeft(t)
		_, l := startListener(t, func(cmd *exec.Cmd) {
			cmd.Env[2] = argEnv + "=echo ready; kill -TERM $$"
			everyone(cmd)
		})
		l.want("ended 143 group signal 0 <nil>")
	})
}
