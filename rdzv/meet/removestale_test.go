package meet

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rdzv/internal/procfs"
	"rdzv/rdzv/meet/internal/pernode"
)

// RemoveStale removes files that killed agents have left, but no locked files and no other files.
func TestRemoveStale(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	var e cleanup
	text := func() ([]byte, error) { return []byte("text"), nil }
	if _, err := pernode.Once(t.Context(), dir, "held", e.add, text); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	touch(t, elsewhere)
	for _, name := range []string{"rdzv-shared-" + "left", "bus"} {
		touch(t, at(name))
	}
	if err := os.Symlink(elsewhere, at("rdzv-shared-"+"link")); err != nil {
		t.Fatal(err)
	}
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
	want := []string{
		"bus", needed, keeperPrefix + "x", "rdzv-shared-" + "held", "rdzv-shared-" + "link",
	}
	if !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
	e.run()
	if entries, _ := os.ReadDir(dir); len(entries) != 4 {
		t.Errorf("left after the agent has left: %v", entries)
	}
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
