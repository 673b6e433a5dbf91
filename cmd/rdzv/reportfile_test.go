package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestReportReplacesRegularFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report")
	must(t, os.WriteFile(path, []byte("old"), 0o600))
	before, err := os.Open(path)
	must(t, err)
	defer before.Close()
	must(t, writeReport(path, report{Kind: endedWell}, time.Now()))
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v; want mode 0600", info, err)
	}
	text := make([]byte, 4)
	if n, _ := before.Read(text); string(text[:n]) != "old" {
		t.Errorf("a reader of the old report reads %q", text[:n])
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("left %v, %v", files, err)
	}
}

// A FIFO keeps nobody waiting for longer than the deadline.
func TestReportToFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	must(t, unix.Mkfifo(path, 0o600))
	big := report{Message: strings.Repeat("x", 1<<20)} // more than a pipe holds
	err := writeReport(path, big, time.Now())
	if err == nil || !strings.HasSuffix(err.Error(), "no process has it open for reading") {
		t.Errorf("without a reader: %v", err)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	must(t, err)
	defer reader.Close()
	if err := writeReport(path, big, time.Now()); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("with a reader that does not read: %v", err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("%v, %v; want a FIFO", info, err)
	}
}

func TestReplaceable(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.WriteFile(at("file"), nil, 0o600))
	must(t, os.Symlink("file", at("link")))
	must(t, os.Symlink("nothing", at("dangling")))
	for path, want := range map[string]string{
		at("file"): at("file"), at("new"): at("new"), at("link"): at("file"),
		at("dangling"): "", dir: "", "/dev/null": "", "/dev/stdout": "", "/proc/self/fd/1": "",
	} {
		if got, ok := replaceable(path); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %t; want %q", path, got, ok, want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
