package torchlib

import (
	"testing"
	"testing/fstest"
)

// Lines of "maps" of torch 1.13 in Debian 12.
const (
	library  = "/usr/lib/x86_64-linux-gnu/libtorch_python.so.1.13.0\n"
	mapped   = "7f1000000000-7f1000010000 r-xp 00010000 fd:01 7 " + library
	readOnly = "7f1000010000-7f1000020000 r--p 00020000 fd:01 7 " + library
	writable = "7f1000021000-7f1000031000 rw-p 00030000 fd:01 7 " + library
	relro    = "7f1000021000-7f1000029000 r--p 00030000 fd:01 7 " + library +
		"7f1000029000-7f1000031000 rw-p 00038000 fd:01 7 " + library
	bss   = "7f1000031000-7f1000032000 rw-p 00000000 00:00 0 \n"
	other = "7f2000000000-7f2000008000 r--p 00000000 fd:01 9 /usr/lib/libtorch.so\n" +
		"7f2000008000-7f2000010000 rw-p 00008000 fd:01 9 /usr/lib/libtorch.so\n"
)

func TestLoadingOf(t *testing.T) {
	for maps, want := range map[string]Loading{
		"":                NotLoading,
		other:             NotLoading,
		mapped + readOnly: Mapped,
		mapped + readOnly + writable + bss + other:   Mapped,
		mapped + readOnly + relro + bss + other:      Relocated,
		mapped + relro:                               Relocated,
		mapped + readOnly + other + writable + relro: Relocated,
	} {
		proc := fstest.MapFS{"71/maps": &fstest.MapFile{Data: []byte(maps)}}
		if got := LoadingOf(proc, 71); got != want {
			t.Errorf("got %d, want %d with\n%s", got, want, maps)
		}
	}
	if got := LoadingOf(fstest.MapFS{}, 71); got != NotLoading {
		t.Errorf("a process that has ended: %d", got)
	}
}
