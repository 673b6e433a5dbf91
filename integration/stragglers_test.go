package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// One rank leaves well while others hang: after 10 s they are named, with their hosts, and nothing else happens.
func TestStragglersAreNamed(t *testing.T) {
	f := newField(t)
	var stories []story
	for i, launcher := range starts {
		stories = append(stories, story{launcher, func(t *testing.T) { f.straggle(t, launcher, 1+i%2) }})
	}
	sideBySide(t, stories)
}

func (f *field) straggle(t *testing.T, launcher string, hosts int) {
	end := filepath.Join(newPlace(t).root, "end")
	j := f.unmet(t, launcher, hosts, nil, actor("leave", end, ""))
	if !eventually(patience, func() bool { return len(j.heard("after rank 0 succeeded")) > 0 }) {
		t.Error("nobody has named the stragglers")
	}
	for _, line := range j.heard("after rank 0 succeeded") {
		for _, want := range []string{"1 (node1)", "3 (node", "still running 10s after"} {
			if !strings.Contains(line, want) {
				t.Errorf("%q does not say %q", line, want)
			}
		}
	}
	if n := len(j.heard("after rank 0 succeeded")); n > 1 {
		t.Errorf("they were named %d times", n)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range j.commands {
		if code := command.code(); code != 0 {
			t.Errorf("the launcher ended with %d", code)
		}
	}
	j.sweep()
}

// heard returns what any of the commands has said that contains the text.
func (j *job) heard(text string) (found []string) {
	for _, command := range j.commands {
		found = append(found, command.linesWith(text)...)
	}
	return found
}

// hanging is a Python program whose rank 0 leaves.
const hanging = `import os, time
def stuck_here():
    time.sleep(1000)
if os.environ["RANK"] != "0":
    stuck_here()
`

// --exit-timeout ends the stragglers, who say where they hang.
func TestExitTimeout(t *testing.T) {
	f := newField(t)
	var stories []story
	for i, launcher := range starts {
		stories = append(stories, story{launcher, func(t *testing.T) {
			j := f.unmet(t, launcher, 1+i%2, []string{"--exit-timeout", "1s"}, []string{python, "-c", hanging})
			for _, command := range j.commands {
				if code := command.code(); code != 122 {
					t.Errorf("the launcher ended with %d, want 122", code)
				}
			}
			j.checkCodes(122)
			if n := len(j.heard("in stuck_here")); n != perJob-1 {
				t.Errorf("%d ranks have shown where they hang, want %d", n, perJob-1)
			}
			if len(j.heard("still running 1s after rank 0 succeeded")) == 0 {
				t.Error("nobody has said why the job was ended")
			}
			j.sweep()
		}})
	}
	sideBySide(t, stories)
}

// deaf is a Python program that ignores SIGTERM, but for its last rank, which fails when all are there if it is told to.
const deaf = `import os, signal, sys, time
what, here = sys.argv[1:]
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(os.path.join(here, os.environ["RANK"]), "w").close()
def busy_here():
    while True:
        time.sleep(0.1)
if what == "fail" and os.environ["RANK"] == "3":
    while len(os.listdir(here)) < 4:
        time.sleep(0.01)
    sys.exit(5)
busy_here()
`

// A worker that ignores SIGTERM shows its stack before it is killed.
func TestDeafWorkerShowsItsStack(t *testing.T) {
	f := newField(t)
	f.env = []string{killsLate}
	var stories []story
	for _, launcher := range starts {
		stories = append(stories, story{launcher, func(t *testing.T) {
			j := f.unmet(t, launcher, 2, []string{"--grace", "1s"}, []string{python, "-c", deaf, "fail", ""})
			j.endDeaf(5, perJob-1)
			j.checkCodes(5)
		}})
	}
	for hosts := 1; hosts <= 2; hosts++ {
		stories = append(stories, story{fmt.Sprintf("mpirun_TERM/%d", hosts), func(t *testing.T) { f.doom(t, hosts) }})
	}
	sideBySide(t, stories)
}

// mpirun kills its ranks seconds after its SIGTERM, long before rdzv would: the stacks come before that.
func (f *field) doom(t *testing.T, hosts int) {
	j := f.unmet(t, "openmpi", hosts, nil, []string{python, "-c", deaf, "stay", ""})
	if !eventually(patience, func() bool {
		there, err := os.ReadDir(filepath.Join(j.root, "job"))
		return err == nil && len(there) == perJob
	}) {
		t.Fatal("not all ranks are there")
	}
	toLauncher(syscall.SIGTERM)(j)
	j.endDeaf(1, perJob)
}

// endDeaf waits for the end of a job of which so many workers show their stack.
func (j *job) endDeaf(code, stacks int) {
	j.t.Helper()
	for _, command := range j.commands {
		if got := command.code(); got != code {
			j.t.Errorf("the launcher ended with %d, want %d", got, code)
		}
	}
	if n := len(j.heard("in busy_here")); n != stacks {
		j.t.Errorf("%d ranks have shown their stack, want %d", n, stacks)
	}
	j.sweep()
}
