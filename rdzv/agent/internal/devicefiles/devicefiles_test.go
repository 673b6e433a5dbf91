package devicefiles

import (
	"context"
	"io/fs"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

// changing is a file system that becomes another one.
type changing struct {
	mu sync.Mutex
	fstest.MapFS
}

func (c *changing) current() fstest.MapFS {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.MapFS
}

func (c *changing) Open(name string) (fs.File, error) { return c.current().Open(name) }

func (c *changing) ReadLink(name string) (string, error) { return c.current().ReadLink(name) }

func (c *changing) Lstat(name string) (fs.FileInfo, error) { return c.current().Lstat(name) }

func (c *changing) become(files fstest.MapFS) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.MapFS = files
}

func open(files map[string]string) fstest.MapFS {
	proc := fstest.MapFS{}
	for name, target := range files {
		proc[name] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink}
	}
	return proc
}

func TestAwaitClosed(t *testing.T) {
	none := open(map[string]string{"71/fd/0": "/dev/null", "71/fd/1": "/dev/nvram", "99/fd/5": "/dev/kfd"})
	for _, file := range []string{"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/kfd"} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		proc := &changing{MapFS: open(map[string]string{"71/fd/0": "/dev/null", "72/fd/7": file})}
		calls := 0
		AwaitClosed(ctx, proc, []int{70, 71, 72}, func(pid int, held string) {
			if calls++; pid != 72 || held != file {
				t.Errorf("pid %d holds %q, want 72 and %q", pid, held, file)
			}
			proc.become(none)
		})
		if calls != 1 || ctx.Err() != nil {
			t.Errorf("%s: %d calls, %v", file, calls, ctx.Err())
		}
	}
	AwaitClosed(t.Context(), none, []int{70, 71}, func(pid int, file string) {
		t.Errorf("waiting for pid %d with %q", pid, file)
	})
}

func TestAwaitClosedEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	proc := open(map[string]string{"71/fd/7": "/dev/nvidia0"})
	AwaitClosed(ctx, proc, []int{71}, func(int, string) { cancel() })
}
