package procfs

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"unsafe"
)

func TestArgumentMemory(t *testing.T) {
	at, size := ArgumentMemory(System, os.Getpid())
	text, err := os.ReadFile("/proc/self/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	first := uintptr(unsafe.Pointer(unsafe.StringData(os.Args[0])))
	if size != uintptr(len(text)) || at != first && bytes.HasPrefix(text, []byte(os.Args[0])) {
		t.Errorf("%d bytes at %#x, want %d at %#x", size, at, len(text), first)
	}
}

func TestNoArgumentMemory(t *testing.T) {
	for name, fields := range map[string]string{
		"another process": strings.Repeat(" 0", 50), "an old kernel": strings.Repeat(" 1", 42), "empty": "",
	} {
		proc := fstest.MapFS{"7/stat": {Data: []byte("7 (a) b) S" + fields)}}
		if at, size := ArgumentMemory(proc, 7); at != 0 || size != 0 {
			t.Errorf("%s: %d bytes at %#x", name, size, at)
		}
	}
	if _, size := ArgumentMemory(fstest.MapFS{}, 7); size != 0 {
		t.Errorf("no process: %d bytes", size)
	}
}
