package host

import (
	"io/fs"
	"testing"
)

// The root of the file system reads files and links as os.DirFS does, and knows what this process
// may open.
func TestRoot(t *testing.T) {
	root := NewRoot()
	for name, want := range map[string]bool{"dev/null": true, "dev/rdzv-does-not-exist": false} {
		if got := root.Accessible(name); got != want {
			t.Errorf("%s: accessible %t, want %t", name, got, want)
		}
	}
	if text, err := fs.ReadFile(root, "proc/self/comm"); err != nil || len(text) == 0 {
		t.Errorf("read %q, %v", text, err)
	}
	if target, err := fs.ReadLink(root, "proc/self"); err != nil || target == "" {
		t.Errorf("link to %q, %v", target, err)
	}
}
