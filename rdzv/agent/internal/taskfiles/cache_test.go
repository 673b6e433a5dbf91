package taskfiles

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

// Several tasks read a file of the node once, and each its own files of /proc.
func TestCache(t *testing.T) {
	files := fstest.MapFS{
		"sys/online": &fstest.MapFile{Data: []byte("0-3")}, "dev/nvidia0": &fstest.MapFile{},
		"proc/71/status": &fstest.MapFile{Data: []byte("71")},
		"proc/72/status": &fstest.MapFile{Data: []byte("72")},
	}
	cache := &Cache{Files: files}
	look := func(pid int) (texts [3]string, devices int) {
		root := Root{Files: cache, PID: pid}
		for i, name := range []string{"sys/online", "proc/self/status", "sys/absent"} {
			text, _ := fs.ReadFile(root, name)
			texts[i] = string(text)
		}
		entries, _ := fs.ReadDir(root, "dev")
		return texts, len(entries)
	}
	check := func(pid int, want [3]string) {
		t.Helper()
		if got, devices := look(pid); got != want || devices != 1 {
			t.Errorf("task %d read %q and %d devices, want %q and 1", pid, got, devices, want)
		}
	}
	check(71, [3]string{"0-3", "71", ""})
	files["sys/online"] = &fstest.MapFile{Data: []byte("0-7")}
	files["sys/absent"] = &fstest.MapFile{Data: []byte("new")}
	files["dev/nvidia1"] = &fstest.MapFile{}
	files["proc/72/status"] = &fstest.MapFile{Data: []byte("changed")}
	check(72, [3]string{"0-3", "changed", ""})
}
