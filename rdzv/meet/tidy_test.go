package meet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What killed agents leave is removed; what somebody holds is not, nor what is not ours.
func TestTidy(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	var e ending
	s := shared{dir: dir, onEnd: e.onEnd}
	held := newHostLock(dir, &plan{public: []byte("held"), ports: []int{1}})
	if got, err := held.try(); err != nil || !got {
		t.Fatal(got, err)
	}
	if _, err := s.oncePerNode(t.Context(), "held", func() ([]byte, error) { return []byte("text"), nil }); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	touch(t, elsewhere)
	for _, name := range []string{hostLockPrefix + "left", sharedPrefix + "left", "bus"} {
		touch(t, at(name))
	}
	if err := os.Symlink(elsewhere, at(hostLockPrefix+"link")); err != nil {
		t.Fatal(err)
	}
	Tidy(dir)
	var left []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"bus", filepath.Base(held.path), hostLockPrefix + "link", sharedPrefix + "held"}; strings.Join(left, " ") != strings.Join(want, " ") {
		t.Errorf("left: %q, want %q", left, want)
	}
	e.end()
	held.release()
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("at the end: %v", entries)
	}
}

// One asks, the others read; when nothing came out, the next asks, though the first is still there.
func TestOncePerNode(t *testing.T) {
	dir := t.TempDir()
	asked := 0
	for i, answer := range []string{"", "text", "another"} {
		var e ending
		s := shared{dir: dir, onEnd: e.onEnd}
		defer e.end()
		text, err := s.oncePerNode(t.Context(), "name", func() ([]byte, error) {
			asked++
			if answer == "" {
				return nil, os.ErrInvalid
			}
			return []byte(answer), nil
		})
		if i == 0 {
			if err == nil {
				t.Error("an error is none")
			}
		} else if err != nil || string(text) != "text" {
			t.Errorf("agent %d: %q, %v", i, text, err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// Many ask at the same moment, and one of them in truth.
func TestOncePerNodeTogether(t *testing.T) {
	dir := t.TempDir()
	asked := make(chan bool, 100)
	texts := make(chan string, cap(asked))
	for range cap(asked) {
		var e ending
		s := shared{dir: dir, onEnd: e.onEnd}
		defer e.end()
		go func() {
			text, _ := s.oncePerNode(context.Background(), "name", func() ([]byte, error) {
				asked <- true
				return []byte("text"), nil
			})
			texts <- string(text)
		}()
	}
	for range cap(asked) {
		if text := <-texts; text != "text" {
			t.Errorf("read %q", text)
		}
	}
	if len(asked) != 1 {
		t.Errorf("asked %d times", len(asked))
	}
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
