package procfs

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path"
	"slices"
	"syscall"
	"testing"
	"testing/fstest"
)

func TestSockets(t *testing.T) {
	link := func(target string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o700}
	}
	proc := fstest.MapFS{
		"7/fd/0": link("/dev/null"), "7/fd/3": link("socket:[4711]"), "7/fd/4": link("pipe:[1]"),
		"7/fd/5": link("socket:[18446744073709551615]"), "7/fd/6": link("socket:[x]"),
		"7/fd/7": link("socket:[18446744073709551616]"), "7/fd/8": link("/tmp/socket:[1]"),
	}
	got, err := Sockets(proc, 7)
	if want := []uint64{4711, 1<<64 - 1}; err != nil || !slices.Equal(got, want) {
		t.Errorf("Sockets = %v, %v, want %v", got, err, want)
	}
	if got, err := Sockets(proc, 8); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Sockets of a process that does not exist = %v, %v", got, err)
	}
}

func TestOpenFiles(t *testing.T) {
	null := &fstest.MapFile{Data: []byte("/dev/null"), Mode: fs.ModeSymlink | 0o700}
	proc := fstest.MapFS{"7/fd/0": null, "7/fd/1": null, "7/fd/2": null, "7/stat": {}}
	for limit, want := range map[int]int{0: 3, 2: 2, 4: 3} {
		got, err := OpenFiles(proc, 7, limit)
		if err != nil || len(got) != want || got[0] != "/dev/null" {
			t.Errorf("OpenFiles with limit %d = %q, %v, want %d files", limit, got, err, want)
		}
	}
	got, err := OpenFiles(System, os.Getpid(), 0)
	if err != nil || len(got) == 0 {
		t.Errorf("OpenFiles of this process = %q, %v", got, err)
	}
}

func TestSocketsOfThisProcess(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	want := info.Sys().(*syscall.Stat_t).Ino
	got, err := Sockets(System, os.Getpid())
	if err != nil || !slices.Contains(got, want) {
		t.Errorf("Sockets = %v, %v, want %v among them", got, err, want)
	}
}

// locked is a file system without permission to look into the directories "fd".
type locked struct{ fstest.MapFS }

func (l locked) Open(name string) (fs.File, error) {
	if path.Base(name) == "fd" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return l.MapFS.Open(name)
}

// The kernel lets nobody look at the files of a process that is ending: it has no sockets any more.
func TestSocketsOfEndedProcess(t *testing.T) {
	for memory, ended := range map[string]bool{"0 0 0 0 0 0 0\n": true, "512 80 70 1 0 90 0\n": false} {
		proc := locked{fstest.MapFS{"71/statm": {Data: []byte(memory)}}}
		sockets, err := Sockets(proc, 71)
		if len(sockets) > 0 || errors.Is(err, fs.ErrPermission) == ended || ended && err != nil {
			t.Errorf("memory %q: %v, %v", memory, sockets, err)
		}
	}
}
