package integration

import (
	"os"
	"path/filepath"
	"strings"
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
	if !eventually(patience, func() bool { return len(j.heard("after rank 0 ended well")) > 0 }) {
		t.Error("nobody has named the stragglers")
	}
	for _, line := range j.heard("after rank 0 ended well") {
		for _, want := range []string{"1 (node1)", "3 (node", "still run 10s after"} {
			if !strings.Contains(line, want) {
				t.Errorf("%q does not say %q", line, want)
			}
		}
	}
	if n := len(j.heard("after rank 0 ended well")); n > 1 {
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
			if len(j.heard("still run 1s after rank 0 ended well")) == 0 {
				t.Error("nobody has said why the job was ended")
			}
			j.sweep()
		}})
	}
	sideBySide(t, stories)
}

// deaf is a Python program that ignores SIGTERM, but for its last rank, which fails when all are there.
const deaf = `import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(os.path.join(sys.argv[1], os.environ["RANK"]), "w").close()
def busy_here():
    while True:
        time.sleep(0.1)
if os.environ["RANK"] == "3":
    while len(os.listdir(sys.argv[1])) < 4:
        time.sleep(0.01)
    sys.exit(5)
busy_here()
`

// A worker that ignores SIGTERM shows its stack before it is killed.
func TestDeafWorkerShowsItsStack(t *testing.T) {
	f := newField(t)
	var stories []story
	for _, launcher := range starts {
		stories = append(stories, story{launcher, func(t *testing.T) {
			j := f.unmet(t, launcher, 2, []string{"--grace", "1s"}, []string{python, "-c", deaf, ""})
			for _, command := range j.commands {
				if code := command.code(); code != 5 {
					t.Errorf("the launcher ended with %d, want 5", code)
				}
			}
			j.checkCodes(5)
			if n := len(j.heard("in busy_here")); n != perJob-1 {
				t.Errorf("%d ranks have shown their stack, want %d", n, perJob-1)
			}
			j.sweep()
		}})
	}
	sideBySide(t, stories)
}
