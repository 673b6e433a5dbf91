package recorder

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A recorder is told to write through its FIFO, if it reads that.
func TestTrigger(t *testing.T) {
	dir := t.TempDir()
	f := Of(filepath.Join(dir, "trace_"), filepath.Join(dir, "pipe_"), 3)
	if f.Dump != filepath.Join(dir, "trace_3") || f.Pipe != filepath.Join(dir, "pipe_3.pipe") {
		t.Fatalf("the files are %+v", f)
	}
	if f.Trigger() {
		t.Error("there is no FIFO, and it is triggered")
	}
	if err := unix.Mkfifo(f.Pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if f.Trigger() {
		t.Error("nobody reads the FIFO, and it is triggered")
	}
	reader, err := os.OpenFile(f.Pipe, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	begin := time.Now()
	if !f.Trigger() {
		t.Error("it is not triggered")
	}
	if n, err := reader.Read(make([]byte, 128)); n == 0 || err != nil {
		t.Errorf("the recorder reads %d bytes, %v", n, err)
	}
	if f.Written(begin, time.Now().Add(time.Minute)) {
		t.Error("nothing is written yet")
	}
	if err := os.WriteFile(f.Dump, []byte("dump"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f.Written(begin, time.Now()) {
		t.Error("the file has just been written, and may not be complete")
	}
	if !f.Written(begin, time.Now().Add(time.Minute)) {
		t.Error("the file is complete")
	}
	if f.Written(time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)) {
		t.Error("the file is old")
	}
	f.Remove()
	if _, err := os.Lstat(f.Pipe); !os.IsNotExist(err) {
		t.Errorf("the FIFO is left: %v", err)
	}
}

// What is no FIFO is neither written nor removed.
func TestOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "1.pipe")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := Files{"", path}
	if f.Trigger() {
		t.Error("a file is triggered")
	}
	f.Remove()
	if text, _ := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file has %q", text)
	}
	if (Files{}).Trigger() || Of("", "pipe", 1) != (Files{}) || Of("dump", "", 1) != (Files{}) {
		t.Error("a process without a recorder has files")
	}
}

func TestCheckFIFO(t *testing.T) {
	dir := t.TempDir()
	if err := CheckFIFO(dir); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if err := CheckFIFO(filepath.Join(dir, "missing")); err == nil {
		t.Error("there can be a FIFO in a directory that does not exist")
	}
}
