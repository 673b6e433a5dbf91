//go:build !execholder

package wrap

import (
	"context"
	"os"
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
