package procfs

import (
	"errors"
	"io/fs"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// ReadFile of System reads long files, and its errors are those of os.DirFS.
func TestSystemReadFile(t *testing.T) {
	long := "LONG=" + strings.Repeat("0123456789", 10_000)
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	cmd.Env = []string{long}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir := strconv.Itoa(cmd.Process.Pid)
	text, err := fs.ReadFile(System, path.Join(dir, "environ"))
	if err != nil || string(text) != long+"\x00" {
		t.Errorf("its environment has %d bytes, %v, want %d", len(text), err, len(long)+1)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for name, want := range map[string]error{
		path.Join(dir, "stat"): fs.ErrNotExist, "../etc/passwd": fs.ErrInvalid, "1/task": syscall.EISDIR,
	} {
		_, err := fs.ReadFile(System, name)
		if e, ok := errors.AsType[*fs.PathError](err); !ok || e.Path != name || !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
}
