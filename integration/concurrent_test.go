package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Two jobs with the same command line at the same time on one machine do not affect each other.
func TestConcurrentJobs(t *testing.T) {
	forEachLauncher(t, func(t *testing.T, l launcher) {
		p := l.place(t)
		end := filepath.Join(p.dir("both"), "end")
		names := []string{"one", "two"}
		var jobs []*process
		for _, name := range names {
			line := l.command(p, 4, nil, worker("until", p.dir(name), end))
			jobs = append(jobs, p.startWith(ownSession(p, name), line...))
		}
		var first []record // of each job
		for _, name := range names {
			all := records(t, p.dir(name), 4)
			checkEnvironments(t, all)
			first = append(first, all[0])
		}
		for _, name := range []string{"RDZV_RUN_ID", "MASTER_PORT"} {
			if first[0].Env[name] == first[1].Env[name] {
				t.Errorf("both jobs have %s=%s, want different values", name, first[0].Env[name])
			}
		}
		if err := os.WriteFile(end, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		checkCodes(0, jobs...)
	})
}

// ownSession gives an mpirun its own directory for sessions, because two mpiruns that create the
// same directory at the same moment fail ("mkdir: File exists"). The agents still share TMPDIR, and
// with it the runtime directory, as those of one user do.
func ownSession(p *place, name string) []string {
	dir := p.dir("session-" + name)
	return []string{"OMPI_MCA_orte_tmpdir_base=" + dir, "PRTE_MCA_prte_tmpdir_base=" + dir}
}

// Jobs of one user start and end repeatedly at the same time: none removes files of another.
func TestConcurrentStarts(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	loop := `i=0; while [ $i -lt $0 ]; do "$@" || exit; i=$((i+1)); done`
	repeat := func(starts int) []string {
		exec := rdzvExec(nil, []string{"true"})
		return append([]string{"sh", "-c", loop, strconv.Itoa(starts)}, exec...)
	}
	jobs := []*process{
		p.startWith(ownSession(p, "one"), append(mpirunCommand(2), repeat(20)...)...),
		p.startWith(ownSession(p, "two"), append(mpirunCommand(2), repeat(20)...)...),
		p.start(repeat(40)...),
	}
	checkCodes(0, jobs...)
	dir := filepath.Join(p.root, "tmp", fmt.Sprintf("rdzv-%d", os.Geteuid()))
	if info, err := os.Lstat(dir); err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("the runtime directory, which jobs share, is %v (%v), want a directory", info, err)
	}
}
