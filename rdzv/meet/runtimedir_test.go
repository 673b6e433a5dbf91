package meet

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rdzv/internal/procfs"
)

// RemoveStale removes files that killed agents have left, but no locked files and no other files.
func TestRemoveStale(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	var e cleanup
	text := func() ([]byte, error) { return []byte("text"), nil }
	if _, err := oncePerNode(t.Context(), dir, "held", e.add, text); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	touch(t, elsewhere)
	for _, name := range []string{sharedPrefix + "left", "bus"} {
		touch(t, at(name))
	}
	if err := os.Symlink(elsewhere, at(sharedPrefix+"link")); err != nil {
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
		"bus", needed, keeperPrefix + "x", sharedPrefix + "held", sharedPrefix + "link",
	}
	if !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
	e.run()
	if entries, _ := os.ReadDir(dir); len(entries) != 4 {
		t.Errorf("left after the agent has left: %v", entries)
	}
}

// The first agent whose call succeeds provides the result of all. After a failed call, the next
// agent calls, although the first has not left.
func TestOncePerNode(t *testing.T) {
	dir := t.TempDir()
	calls := 0
	for i, answer := range []string{"", "text", "another"} {
		var e cleanup
		defer e.run()
		text, err := oncePerNode(t.Context(), dir, "name", e.add, func() ([]byte, error) {
			calls++
			if answer == "" {
				return nil, os.ErrInvalid
			}
			return []byte(answer), nil
		})
		if i == 0 {
			if err == nil {
				t.Error("the error of the first agent is not returned")
			}
		} else if err != nil || string(text) != "text" {
			t.Errorf("agent %d: %q, %v", i, text, err)
		}
	}
	if calls != 2 {
		t.Errorf("called %d times, want 2", calls)
	}
}

// Of many agents at the same time, one calls the function.
func TestOncePerNodeTogether(t *testing.T) {
	dir := t.TempDir()
	called := make(chan bool, 100)
	texts := make(chan string, cap(called))
	for range cap(called) {
		var e cleanup
		defer e.run()
		go func() {
			text, _ := oncePerNode(context.Background(), dir, "name", e.add, func() ([]byte, error) {
				called <- true
				return []byte("text"), nil
			})
			texts <- string(text)
		}()
	}
	for range cap(called) {
		if text := <-texts; text != "text" {
			t.Errorf("read %q", text)
		}
	}
	if len(called) != 1 {
		t.Errorf("called %d times, want once", len(called))
	}
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
