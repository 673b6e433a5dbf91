package integration

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What cannot be started is refused, by its own code and in words that name the value.
func TestCannotStart(t *testing.T) {
	for _, c := range []struct {
		name, program string
		code          int
	}{
		{"notThere", "no-such-program", 127},
		{"notThereByPath", "./no/such/program", 127},
		{"notExecutable", "./data.txt", 126},
		{"directory", "./", 126},
	} {
		t.Run(c.name, func(t *testing.T) {
			forEachLauncher(t, func(t *testing.T, l launcher) {
				p := l.place(t)
				if err := os.WriteFile(filepath.Join(p.root, "data.txt"), []byte("no program\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				job := p.start(l.line(p, 2, nil, []string{c.program})...)
				if code := job.code(); code != c.code {
					t.Errorf("the launcher ended with %d, want %d", code, c.code)
				}
				if len(job.linesWith("rdzv:", fmt.Sprintf("%q", c.program))) == 0 {
					t.Errorf("no line names %q", c.program)
				}
			})
		})
	}
}

// A mistake on the command line is told in one line that names the value, and ends with 125.
func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args  []string
		value string
	}{
		{[]string{"exec", "--nodes", "x", "--", "true"}, "x"},
		{[]string{"exec", "--nproc-per-node", "-3", "--", "true"}, "-3"},
		{[]string{"exec", "--join-timeout", "soon", "--", "true"}, "soon"},
		{[]string{"exec", "--no-such-flag", "--", "true"}, "no-such-flag"},
		{[]string{"exec", "--"}, ""},
		{[]string{"exec"}, ""},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			p := newPlace(t)
			job := p.start(append([]string{*rdzvBin}, c.args...)...)
			if code := job.code(); code != 125 {
				t.Errorf("rdzv ended with %d, want 125", code)
			}
			checkOneLine(t, job, c.value)
		})
	}
}

// checkOneLine: rdzv has said one thing, with the value in it; hints and a worker's output aside.
func checkOneLine(t *testing.T, job *process, value string) {
	t.Helper()
	said := slices.DeleteFunc(job.linesWith("rdzv:"), func(line string) bool { return strings.HasPrefix(line, "rdzv: hint:") })
	if len(said) != 1 || !strings.Contains(said[0], value) {
		t.Errorf("rdzv said %q, want one line with %q", said, value)
	}
}

// Without a launcher, one of two nodes comes: after --join-timeout it gives up and says so.
func TestMissingNode(t *testing.T) {
	p := newPlace(t)
	job := p.start(rdzvExec([]string{"--nodes", "2", "--store", freeAddress(t), "--join-timeout", "2s"}, []string{"true"})...)
	if code := job.code(); code != 124 {
		t.Errorf("rdzv ended with %d, want 124", code)
	}
	if len(job.linesWith("rdzv: timed out after 2s")) != 1 {
		t.Error("no line, or several, say that not all came within 2s")
	}
}

// Under mpirun, one rank never starts its rdzv: the others name it.
func TestMissingRank(t *testing.T) {
	p := newPlace(t)
	script := `[ "$OMPI_COMM_WORLD_RANK" = 2 ] && exec "$1" worker wait "$2"; shift 2; exec "$@"`
	line := append(mpirunCommand(4), "sh", "-c", script, "sh", self, p.dir("absent"))
	job := p.start(append(line, rdzvExec([]string{"--join-timeout", "2s"}, []string{"true"})...)...)
	if code := job.code(); code != 124 {
		t.Errorf("mpirun ended with %d, want 124", code)
	}
	if len(job.linesWith("rdzv:", "rank 2")) == 0 {
		t.Error("no line names rank 2, which never came")
	}
}

// freeAddress returns an address of this host that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
