package host

import (
	"os"
	"testing"
)

func TestDirectoryRemoved(t *testing.T) {
	dir := t.TempDir() + "/dir"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if DirectoryRemoved() {
		t.Error("the directory was removed before it was")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if !DirectoryRemoved() {
		t.Error("the directory was not removed after it was")
	}
}
