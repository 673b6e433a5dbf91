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

// A program that cannot be started is an error with an exit code of its own and a message that
// names it.
func TestCannotStart(t *testing.T) {
	t.Parallel()
	var all []variant
	for _, c := range []struct {
		name, program string
		code          int
	}{
		{"notFound", "no-such-program", 127},
		{"notFoundByPath", "./no/such/program", 127},
		{"notExecutable", "./data.txt", 126},
		{"directory", "./", 126},
	} {
		all = append(all, underLaunchers(c.name, func(t *testing.T, l launcher) {
			p := l.place(t)
			data := filepath.Join(p.root, "data.txt")
			if err := os.WriteFile(data, []byte("not a program\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			job := p.start(l.command(p, 2, nil, []string{c.program})...)
			job.checkCode(c.code)
			if len(job.linesWith("rdzv:", fmt.Sprintf("%q", c.program))) == 0 {
				t.Errorf("rdzv printed %q, want a line with %q", job.linesWith("rdzv:"), c.program)
			}
		})...)
	}
	runConcurrently(t, selected(all))
}

// An error on the command line is reported in one line that has the value, with exit code 125.
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
			job := newPlace(t).start(append([]string{*rdzvBin}, c.args...)...)
			job.checkCode(125)
			checkOneLine(t, job, c.value)
		})
	}
}

// checkOneLine checks that rdzv has printed one line, besides hints, and that it has the value.
func checkOneLine(t *testing.T, job *process, value string) {
	t.Helper()
	lines := slices.DeleteFunc(job.linesWith("rdzv:"), func(line string) bool {
		return strings.HasPrefix(line, "rdzv: hint:")
	})
	if len(lines) != 1 || !strings.Contains(lines[0], value) {
		t.Errorf("rdzv printed %q, want one line with %q", lines, value)
	}
}

// Without a launcher, one of two nodes does not join: after --join-timeout the agent exits with a
// message.
func TestMissingNode(t *testing.T) {
	flags := []string{"--nodes", "2", "--store", freeAddress(t), "--join-timeout", "2s"}
	job := newPlace(t).start(rdzvExec(flags, []string{"true"})...)
	job.checkCode(124)
	const want = "rdzv: timed out after 2s (--join-timeout): 1 of 2 agents joined"
	if len(job.linesWith(want)) != 1 {
		t.Errorf("rdzv printed %q, want one line with %q", job.linesWith("rdzv:"), want)
	}
}

// Under mpirun, one rank does not start rdzv: the others name it.
func TestMissingRank(t *testing.T) {
	p := newPlace(t)
	script := `[ "$OMPI_COMM_WORLD_RANK" = 2 ] && exec "$1" worker wait "$2"; shift 2; exec "$@"`
	line := append(mpirunCommand(4), "sh", "-c", script, "sh", self, p.dir("absent"))
	job := p.start(append(line, rdzvExec([]string{"--join-timeout", "2s"}, []string{"true"})...)...)
	job.checkCode(124)
	if len(job.linesWith("rdzv:", "rank 2")) == 0 {
		t.Errorf("rdzv printed %q, want a line that names rank 2", job.linesWith("rdzv:"))
	}
}

// freeAddress returns an address of this host that no process listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Below the address-space limit that an agent needs exec fails at once, with it exec runs a job.
func TestAddressSpaceLimit(t *testing.T) {
	const needed = 2 << 20 // kB
	limited := func(limit int) *process {
		script := fmt.Sprintf(`ulimit -v %d; exec "$@"`, limit)
		return newPlace(t).start("sh", "-c", script, "sh",
			*rdzvBin, "exec", "--nproc-per-node", "4", "--", "true")
	}
	low := limited(1 << 20)
	low.checkCode(121)
	checkOneLine(t, low, fmt.Sprintf("address-space limit too low: %d kB (%d kB needed)", 1<<20,
		needed))
	limited(needed).checkCode(0)
}

// With few processes and threads allowed, what can run does. The limit counts all those of the user.
// Hence it needs a user without any, or a user namespace, where it counts those inside.
func TestProcessLimit(t *testing.T) {
	limited := func(limit int, line ...string) *process {
		p := newPlace(t)
		script := fmt.Sprintf(`ulimit -u %d; exec "$@"`, limit)
		line = append([]string{"bash", "-c", script, "bash"}, line...)
		if os.Geteuid() != 0 {
			return p.start(append([]string{"unshare", "--map-current-user"}, line...)...)
		}
		return p.start(asUser(t, p, "61634", line)...)
	}
	rank := limited(30, *rdzvBin, "get-rank", "--default", "7")
	rank.checkCode(0)
	if len(rank.linesWith("7")) != 1 {
		t.Errorf("get-rank printed %q, want 7", rank.linesWith())
	}
	limited(30, *rdzvBin, "version").checkCode(0)
	limited(200, direct(nil, 4, nil, []string{"true"})...).checkCode(0)
	many := limited(200, direct(nil, 300, nil, []string{"sleep", "60"})...)
	many.checkCode(126)
	if len(many.linesWith("rdzv: hint: raise the limit of processes and threads (ulimit -u)")) != 1 {
		t.Errorf("rdzv printed %q, want a hint at the limit", many.linesWith("rdzv:"))
	}
}
