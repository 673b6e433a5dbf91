package torchlib

import (
	"encoding/binary"
	"fmt"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
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

// sleeper is a process whose main thread is in a system call, with these words on its stack. libc
// is at 0x10, the C++ library at 0x20, torch at 0x30, python at 0x40.
func sleeper(call int, stack ...uint64) fstest.MapFS {
	const maps = "10-20 r-xp 0 0:1 7 /lib/libc.so.6\n20-30 r-xp 0 0:1 7 /usr/lib/libstdc++.so.6\n" +
		"30-40 r-xp 0 0:1 7 /opt/torch/lib/libtorch_cpu.so\n40-50 r-xp 0 0:1 7 /usr/bin/python3\n" +
		"50-60 rw-p 0 0:1 7 /opt/torch/lib/libtorch_cpu.so\n"
	mem := make([]byte, 8)
	for _, word := range stack {
		mem = binary.NativeEndian.AppendUint64(mem, word)
	}
	return fstest.MapFS{
		"71/maps": &fstest.MapFile{Data: []byte(maps)}, "71/mem": &fstest.MapFile{Data: mem},
		"71/syscall": &fstest.MapFile{Data: fmt.Appendf(nil, "%d 0x0 0x0 0x1 0x2 0x3 0x4 0x8 0x15\n", call)},
	}
}

func TestConnecting(t *testing.T) {
	const libc, libstdcxx, torch, python, data = 0x18, 0x28, 0x38, 0x48, 0x58
	for _, row := range []struct {
		name string
		proc fstest.MapFS
		want bool
	}{
		{"torch", sleeper(unix.SYS_CLOCK_NANOSLEEP, 7, libc, torch, python), true},
		{"old C library", sleeper(unix.SYS_NANOSLEEP, torch), true},
		{"C++ library", sleeper(unix.SYS_CLOCK_NANOSLEEP, libstdcxx, torch), true},
		{"time.sleep", sleeper(unix.SYS_CLOCK_NANOSLEEP, libc, data, python, torch), false},
		{"another call", sleeper(unix.SYS_FUTEX, torch), false},
		{"no caller", sleeper(unix.SYS_CLOCK_NANOSLEEP, 7, 1<<60), false},
		{"running", fstest.MapFS{"71/syscall": &fstest.MapFile{Data: []byte("running\n")}}, false},
		{"ended", fstest.MapFS{}, false},
	} {
		if got := Connecting(row.proc, 71); got != row.want {
			t.Errorf("%s: got %t", row.name, got)
		}
	}
}
