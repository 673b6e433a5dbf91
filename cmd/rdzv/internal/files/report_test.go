package files

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rdzv/cmd/rdzv/internal/tables"
	"rdzv/internal/proctest"
)

// A regular file is replaced, also through a symbolic link: a process that has the old report open
// reads all of it.
func TestReportReplacesRegularFile(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "report"), filepath.Join(dir, "link")
	fatalIf(t, os.WriteFile(path, []byte("old"), 0o600))
	fatalIf(t, os.Symlink("report", link))
	before, err := os.Open(path)
	fatalIf(t, err)
	defer before.Close()
	fatalIf(t, writeReport(link, tables.JSON(Report{Kind: endedWell}), false))
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the report is %v, %v; want a regular file with mode 0600", info, err)
	}
	if text, err := os.ReadFile(path); !strings.Contains(string(text), `"kind": "success"`) {
		t.Errorf("the new report is %q, %v; want the kind success", text, err)
	}
	if text, err := io.ReadAll(before); string(text) != "old" {
		t.Errorf("a reader of the old report got %q, %v; want %q", text, err, "old")
	}
	if target, err := os.Readlink(link); target != "report" {
		t.Errorf("the link leads to %q, %v; want report", target, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("the directory contains %v, %v; want report and link", files, err)
	}
}

// What an agent knows about the failure of another agent's worker replaces the report on another job
// or attempt, but not that of the worker's agent.
func TestReportOfOtherAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	known := Report{Kind: "failed", Job: "a", Attempt: 1, failure: &failure{Host: "node1", PID: 7}}
	write := func(r Report, want string) {
		t.Helper()
		fatalIf(t, writeReport(path, tables.JSON(r), true))
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("the report is %q, %v; want %q", text, err, want)
		}
	}
	detailed := known
	detailed.failure = &failure{Host: "node1", PID: 7, Stderr: []string{"line"}}
	for _, old := range []Report{
		{}, {Kind: endedWell, Job: "a", Attempt: 1},
		{Job: "a", failure: known.failure}, {Job: "b", Attempt: 1, failure: known.failure},
		{Job: "a", Attempt: 1, failure: &failure{Host: "node2", PID: 7}},
	} {
		fatalIf(t, os.WriteFile(path, tables.JSON(old), 0o600))
		write(known, string(tables.JSON(known)))
	}
	fatalIf(t, writeReport(path, tables.JSON(detailed), false))
	write(known, string(tables.JSON(detailed)))
	fatalIf(t, os.Remove(path))
	write(known, string(tables.JSON(known)))
}

// Writing to a FIFO waits for no longer than the limit, whether or not it has a reader.
func TestReportToFIFO(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	fatalIf(t, unix.Mkfifo(path, 0o600))
	big := make([]byte, 1<<20) // more than the buffer of a pipe
	write := func() error { return writeReport(path, big, false) }
	err := new(Limit).Do(Timeout, write)
	if err == nil || !strings.HasSuffix(err.Error(), "no process has it open for reading") {
		t.Errorf("without a reader: %v, want an error that says so", err)
	}
	reader, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	fatalIf(t, err)
	defer reader.Close()
	if err := new(Limit).Do(time.Second/2, write); err != ErrSlow {
		t.Errorf("reader that does not read: %v, want %v", err, ErrSlow)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("after the reports the file is %v, %v; want a FIFO", info, err)
	}
}

func fatalIf(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// In a directory where everyone can create files a link of another user would let this user decide
// which file is replaced.
func TestReportThroughLinkOfOtherUser(t *testing.T) {
	const other = "65534:65534"
	dir, target := t.TempDir(), filepath.Join(t.TempDir(), "target")
	fatalIf(t, os.Chmod(dir, 0o777|os.ModeSticky))
	fatalIf(t, os.WriteFile(target, []byte("precious"), 0o600))
	for name, to := range map[string]string{
		"link": target, "chain": filepath.Join(dir, "link"), "dangling": target + "-new",
	} {
		link := filepath.Join(dir, name)
		fatalIf(t, os.Symlink(to, link))
		if name != "chain" { // the second link is the other user's
			proctest.RunAsRoot(t, "chown", "-h", other, link)
		}
	}
	for _, name := range []string{"link", "chain", "dangling"} {
		path := filepath.Join(dir, name)
		for _, another := range []bool{false, true} {
			err := writeReport(path, tables.JSON(Report{Kind: endedWell}), another)
			if want := "it belongs to another user"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("through %s, another: %t: %v, want an error with %q", name, another, err, want)
			}
		}
	}
	if text, err := os.ReadFile(target); string(text) != "precious" {
		t.Errorf("the file of this user is %q, %v", text, err)
	}
	if _, err := os.Lstat(target + "-new"); err == nil {
		t.Error("a file was created where the link of another user leads")
	}
}
