package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Two jobs of the same line at the same time on one machine never see each other.
func TestConcurrentJobs(t *testing.T) {
	forEachLauncher(t, func(t *testing.T, l launcher) {
		p := l.place(t)
		end := filepath.Join(p.dir("both"), "end")
		var jobs []*process
		var dirs []string
		for _, name := range []string{"one", "two"} {
			dirs = append(dirs, p.dir(name))
			jobs = append(jobs, p.startWith(ownSession(p, name), l.line(p, 4, nil, worker("until", p.dir(name), end))...))
		}
		var first []record
		for _, dir := range dirs {
			all := records(t, dir, 4)
			checkIdentity(t, all)
			first = append(first, all[0])
		}
		for _, name := range []string{"RDZV_RUN_ID", "MASTER_PORT"} {
			if first[0].Env[name] == first[1].Env[name] {
				t.Errorf("both jobs have %s=%s", name, first[0].Env[name])
			}
		}
		if err := os.WriteFile(end, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, job := range jobs {
			if code := job.code(); code != 0 {
				t.Errorf("a job ended with %d", code)
			}
		}
	})
}

// ownSession gives an mpirun a directory of its own for its session: two that create the same one at the same moment fail
// ("mkdir: File exists"). The agents share TMPDIR, and with it the runtime directory, as those of one user do.
func ownSession(p *place, name string) []string {
	dir := p.dir("session-" + name)
	return []string{"OMPI_MCA_orte_tmpdir_base=" + dir, "PRTE_MCA_prte_tmpdir_base=" + dir}
}

// Jobs of one user start and end beside one another, over and over: none takes from another what that one has on disk.
func TestConcurrentStarts(t *testing.T) {
	p := newPlace(t)
	loop := `i=0; while [ $i -lt $0 ]; do "$@" || exit; i=$((i+1)); done`
	repeat := func(jobLaunchers int) []string {
		return append([]string{"sh", "-c", loop, strconv.Itoa(jobLaunchers)}, rdzvExec(nil, []string{"true"})...)
	}
	jobs := []*process{
		p.startWith(ownSession(p, "one"), append(mpirunCommand(2), repeat(40)...)...),
		p.startWith(ownSession(p, "two"), append(mpirunCommand(2), repeat(40)...)...),
		p.start(repeat(80)...),
	}
	for _, job := range jobs {
		if code := job.code(); code != 0 {
			t.Errorf("%q ended with %d: %q", job.argv[0], code, job.linesWith("rdzv: "))
		}
	}
	dir := filepath.Join(p.root, "tmp", fmt.Sprintf("rdzv-%d", os.Geteuid()))
	if info, err := os.Lstat(dir); err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("the runtime directory must outlive the jobs, which share it: %v, %v", info, err)
	}
}

// A script under one mpirun may run one job after another.
func TestConsecutiveJobs(t *testing.T) {
	p := newPlace(t)
	one, two, three := p.dir("one"), p.dir("two"), p.dir("three")
	script := `rdzv=$1 self=$2; shift 2; for dir; do "$rdzv" exec -- "$self" worker record "$dir" || exit; done`
	job := p.start(append(mpirunCommand(4), "sh", "-c", script, "sh", *rdzvBin, self, one, two, three)...)
	if code := job.code(); code != 0 {
		t.Errorf("the script ended with %d", code)
	}
	for _, dir := range []string{one, two, three} {
		checkIdentity(t, records(t, dir, 4))
	}
}

// The second of three may fail: it ends the script with its code, and the third does not start.
func TestConsecutiveJobsOneFails(t *testing.T) {
	p := newPlace(t)
	one, two, three := p.dir("one"), p.dir("two"), p.dir("three")
	script := `rdzv=$1 self=$2
		"$rdzv" exec -- "$self" worker record "$3" || exit
		"$rdzv" exec -- "$self" worker exit "$4" 2 7 || exit
		"$rdzv" exec -- "$self" worker record "$5"`
	job := p.start(append(mpirunCommand(4), "sh", "-c", script, "sh", *rdzvBin, self, one, two, three)...)
	if code := job.code(); code != 7 {
		t.Errorf("the script ended with %d, want 7", code)
	}
	checkIdentity(t, records(t, one, 4))
	checkIdentity(t, records(t, two, 4))
	if n := count(three); n != 0 {
		t.Errorf("%s workers of the third job started", strconv.Itoa(n))
	}
}
