package meet

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rdzv/internal/procfs"
)

// RemoveStale removes files that killed agents have left, but and no other files.
func TestRemoveStale(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	touch(t, at("bus"))
	self, err := procfs.Read(procfs.System, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	needed := fmt.Sprintf("%s%d-%d", keeperPrefix, self.PID, self.Start)
	for _, name := range []string{needed, needed + "0", keeperPrefix + "x"} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: at(name)})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
	RemoveStale(procfs.System, dir)
	var left []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{"bus", needed, keeperPrefix + "x"}
	if !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
