package repo

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// buildExample builds a program of examples/ in its own module, as an outside user would, and
// without a network.
func buildExample(t *testing.T, name string) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), name)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, ".")
	cmd.Dir = filepath.Join("examples", name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build in %s: %v\n%s", cmd.Dir, err, out)
	}
	return program
}

// runExample returns what a program has printed and its exit code, when nothing of it is left: each
// process that it starts inherits the write end of a pipe.
func runExample(t *testing.T, program string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}
	cmd.ExtraFiles = []*os.File{w}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	w.Close()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r.SetReadDeadline(time.Now().Add(time.Second))
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%s %v has left a process: %v", filepath.Base(program), args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestEmbedAgent(t *testing.T) {
	program := buildExample(t, "embed-agent")
	for _, c := range []struct {
		args []string
		code int
		last []string // types of the last events
	}{
		{nil, 0, []string{"worker_exited", "job_ended", "finished"}},
		{[]string{"-fail", "2"}, 3, []string{"worker_exited", "failure_reported", "finished"}},
	} {
		stdout, stderr, code := runExample(t, program, c.args...)
		if code != c.code {
			t.Errorf("%v: exit code %d, want %d", c.args, code, c.code)
		}
		if strings.Contains(stderr, "no such data set") != (c.code != 0) {
			t.Errorf("%v: stderr %q", c.args, stderr)
		}
		var types []string
		for line := range strings.Lines(stdout) {
			var e struct{ Type string }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Errorf("%v: %v in %s", c.args, err, line)
			}
			types = append(types, e.Type)
		}
		started := slices.Repeat([]string{"worker_started"}, 4)
		begin := slices.Concat([]string{"placed", "store_found", "world_agreed"}, started)
		if len(types) < 10 || !slices.Equal(types[len(types)-3:], c.last) {
			t.Errorf("%v: events %q, want the last to be %q", c.args, types, c.last)
		}
		all := append(begin, "job_ended", "finished")
		if c.code == 0 && !slices.Equal(without(types, "worker_exited"), all) {
			t.Errorf("%v: events %q, want %q and worker_exited", c.args, types, all)
		}
	}
}

// without returns the words but those that are equal to one.
func without(words []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == one })
}

func TestEmbedWorld(t *testing.T) {
	program := buildExample(t, "embed-world")
	stdout, stderr, code := runExample(t, program)
	for _, rank := range []string{"rank 0 of 3: ", "rank 1 of 3: ", "rank 2 of 3: "} {
		if !strings.Contains(stdout, rank+"all workers succeeded\n") {
			t.Errorf("no %q in %q", rank, stdout)
		}
	}
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}

	stdout, stderr, code = runExample(t, program, "-fail", "1")
	for _, member := range []string{"member-0: ", "member-1: ", "member-2: "} {
		if !strings.Contains(stderr, member+"rank 1 on localhost failed first: exit 3\n") {
			t.Errorf("no %q in %q", member, stderr)
		}
	}
	if code != 1 || stdout != "" {
		t.Errorf("exit code %d, stdout %q", code, stdout)
	}
}
