package integration

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Two jobs of the same line at the same time on one machine never see each other.
func TestTwoAtOnce(t *testing.T) {
	underEach(t, func(t *testing.T, l launcher) {
		p := l.place(t)
		end := filepath.Join(p.dir("both"), "end")
		var jobs []*process
		var dirs []string
		for _, name := range []string{"one", "two"} {
			dirs = append(dirs, p.dir(name))
			// Two mpirun that make the same session directory at the same moment fail: "mkdir: File exists".
			tmp := "TMPDIR=" + p.dir("tmp-"+name)
			jobs = append(jobs, p.startWith([]string{tmp}, l.line(p, 4, nil, worker("until", p.dir(name), end))...))
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

// A script under one mpirun may run one job after another.
func TestThreeInARow(t *testing.T) {
	p := newPlace(t)
	one, two, three := p.dir("one"), p.dir("two"), p.dir("three")
	script := `rdzv=$1 self=$2; shift 2; for dir; do "$rdzv" exec -- "$self" worker record "$dir" || exit; done`
	job := p.start(append(mpirunLine(4), "sh", "-c", script, "sh", *rdzvBin, self, one, two, three)...)
	if code := job.code(); code != 0 {
		t.Errorf("the script ended with %d", code)
	}
	for _, dir := range []string{one, two, three} {
		checkIdentity(t, records(t, dir, 4))
	}
}

// The second of three may fail: it ends the script with its code, and the third does not start.
func TestSecondInARowFails(t *testing.T) {
	p := newPlace(t)
	one, two, three := p.dir("one"), p.dir("two"), p.dir("three")
	script := `rdzv=$1 self=$2
		"$rdzv" exec -- "$self" worker record "$3" || exit
		"$rdzv" exec -- "$self" worker exit "$4" 2 7 || exit
		"$rdzv" exec -- "$self" worker record "$5"`
	job := p.start(append(mpirunLine(4), "sh", "-c", script, "sh", *rdzvBin, self, one, two, three)...)
	if code := job.code(); code != 7 {
		t.Errorf("the script ended with %d, want 7", code)
	}
	checkIdentity(t, records(t, one, 4))
	checkIdentity(t, records(t, two, 4))
	if n := count(three); n != 0 {
		t.Errorf("%s workers of the third job started", strconv.Itoa(n))
	}
}
