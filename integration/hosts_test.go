package integration

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A hostsRow is a job that `rdzv exec --hosts` starts on a bed, and how it must end: with that exit
// code and output, within 30 s of its start or of when all its ranks run, with no process and no file
// left on any host.
type hostsRow struct {
	name    string
	long    bool              // only with -all
	from    int               // the host on which the starter runs; 1 if it is 0
	hosts   string            // the value of --hosts; flags have it if it is empty
	flags   []string          // also variables, NAME=VALUE
	program []string          // sayRank if it is nil
	shell   string            // a shell command with the command line in place of RDZV
	prepare func(r *hostsRun) // before the start
	during  func(r *hostsRun) // while it runs
	code    int               // the exit code of the starter, or anyFailure
	shows   []string          // each is part of a line
	hides   []string          // no line contains one
	after   func(r *hostsRun) // when it has ended
	within  time.Duration     // 30 s if it is 0
	sshd    bool              // sshd may go on: nothing tells it that its client is gone
}

const anyFailure = -1

// sayRank is a program that ends at once, holdRank one that runs until it gets a signal.
var (
	sayRank  = []string{"sh", "-c", "echo rank $RANK of $WORLD_SIZE is $(id -un) on $(hostname)"}
	holdRank = []string{"sh", "-c", "echo rank $RANK holds; exec sleep 1000"}
)

// A hostsRun is a row while it runs.
type hostsRun struct {
	*hostsRow
	t   *testing.T
	bed *sshBed
	p   *clusterPlace
	job *process

	since time.Time // from when its end must be soon
}

// run runs a row on a bed, which it leaves as it was.
func (row hostsRow) run(t *testing.T, b *sshBed) {
	if row.long && !*wholeMatrix {
		return
	}
	t.Run(row.name, func(t *testing.T) {
		r := &hostsRun{hostsRow: &row, t: t, bed: b, p: b.newPlace(t)}
		defer b.sshd("reset")
		if row.prepare != nil {
			row.prepare(r)
		}
		r.job = r.p.start(b.as(max(row.from, 1), "you", row.line()...)...)
		r.since = r.job.started
		if row.during != nil {
			row.during(r)
		}
		r.checkEnd()
		if row.after != nil {
			row.after(r)
		}
		if row.sshd {
			b.sshd("logout")
		}
		b.checkLeft(t)
	})
}

// line is the command line of the starter.
func (row *hostsRow) line() []string {
	line := []string{"env"}
	flags := slices.Clone(row.flags)
	for len(flags) > 0 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(flags[0]) {
		line, flags = append(line, flags[0]), flags[1:]
	}
	line = append(line, rdzvOnHost, "exec")
	if row.hosts != "" {
		line = append(line, "--hosts", row.hosts)
	}
	program := row.program
	if program == nil {
		program = sayRank
	}
	line = slices.Concat(line, flags, []string{"--"}, program)
	if row.shell != "" {
		return []string{"sh", "-c", strings.ReplaceAll(row.shell, "RDZV", quoted(line))}
	}
	return line
}

func (r *hostsRun) checkEnd() {
	r.t.Helper()
	code, within := r.job.code(), r.within
	if within == 0 {
		within = 30 * time.Second
	}
	if took := time.Since(r.since); took > within {
		r.t.Errorf("the starter took %v to end, want at most %v", took, within)
	}
	if code != r.code && (r.code != anyFailure || code == 0) {
		r.t.Errorf("the starter ended with exit code %d, want %d", code, r.code)
	}
	for _, text := range r.shows {
		if len(r.job.linesWith(text)) == 0 {
			r.t.Errorf("no line contains %q", text)
		}
	}
	for _, text := range r.hides {
		if lines := r.job.linesWith(text); len(lines) > 0 {
			r.t.Errorf("a line is %q, want none with %q", lines[0], text)
		}
	}
}

// holds waits until n ranks of holdRank run.
func (r *hostsRun) holds(n int) {
	r.t.Helper()
	for rank := range n {
		r.job.waitFor(fmt.Sprintf("rank %d holds", rank))
	}
	r.since = time.Now()
}

// once checks that exactly one line contains the text.
func (r *hostsRun) once(text string) {
	r.t.Helper()
	if lines := r.job.linesWith(text); len(lines) != 1 {
		r.t.Errorf("%d lines contain %q, want one: %q", len(lines), text, lines)
	}
}

// eachRank are the lines of sayRank with a host for each rank: HOST or USER@HOST.
func eachRank(hosts ...string) (lines []string) {
	for rank, host := range hosts {
		user, name, found := strings.Cut(host, "@")
		if !found {
			user, name = "you", host
		}
		lines = append(lines, fmt.Sprintf("rank %d of %d is %s on %s", rank, len(hosts), user, name))
	}
	return lines
}

// rdzvOnHost is the path of rdzv on the hosts to which install copies it.
const rdzvOnHost = "/media/rdzv"

// install copies rdzv to hosts, into a directory that is not in PATH.
func (b *sshBed) install(hosts ...int) {
	b.t.Helper()
	text, err := os.ReadFile(*rdzvBin)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, host := range hosts {
		b.sshdWith(string(text), "root", fmt.Sprint(host), "sh", "-c",
			`cat > "$0" && chmod 755 "$0"`, rdzvOnHost)
	}
}

// commandLines are those of the processes on all hosts, by their pids.
func (b *sshBed) commandLines() map[int]string {
	b.t.Helper()
	lines := map[int]string{}
	for line := range strings.Lines(b.sshd("left")) {
		var pid int
		if _, err := fmt.Sscanf(line, "process %d:", &pid); err == nil {
			_, text, _ := strings.Cut(line, ": ")
			lines[pid] = strings.TrimSpace(text)
		}
	}
	return lines
}

// waitForProcess waits for a process on any host with these texts in its command line.
func (b *sshBed) waitForProcess(t *testing.T, texts ...string) (pid int) {
	t.Helper()
	if !eventually(waitLimit, func() bool {
		for p, line := range b.commandLines() {
			found := true
			for _, text := range texts {
				found = found && strings.Contains(line, text)
			}
			if found {
				pid = p
				return true
			}
		}
		return false
	}) {
		t.Fatalf("no host has a process with %q", texts)
	}
	return pid
}

// signalOn sends a signal to a process on a host, or to a process group if pid is negative.
func (b *sshBed) signalOn(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := trySignal(pid, s); err != nil {
		t.Fatalf("cannot send %v to process %d: %v", s, pid, err)
	}
}
