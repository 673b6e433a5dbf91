package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Whatever is killed, all processes end also if the user is not root.
func TestWithoutRoot(t *testing.T) {
	for _, l := range launchers[:3] { // Slurm has no account of such a user
		for _, victim := range []string{"worker", "agent", "runner"} {
			t.Run(l.name+"/"+victim, func(t *testing.T) { killWithoutRoot(t, l, victim) })
		}
	}
}

func killWithoutRoot(t *testing.T, l launcher, victim string) {
	p := newPlace(t)
	dir := p.dir("job")
	job := p.start(asNobody(t, p, l.command(p, 4, nil, worker("session", dir)))...)
	workers := records(t, dir, 4)
	isLauncher := func(pid int) bool { return pid == job.cmd.Process.Pid }
	watch := watchExits(slices.DeleteFunc(p.tree(), isLauncher))
	defer watch.close()
	pid := workers[3].PID
	switch victim {
	case "runner":
		pid = parentOf(pid)
	case "agent":
		pid = agentAbove(pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	watch.wait(15 * time.Second)
	watch.check(t)
	want := map[string]int{"worker": 137, "runner": 123, "agent": 137}[victim]
	if victim == "agent" && l.name == "hydra" {
		want = 9 // Hydra reports SIGKILL like this
	}
	job.checkCode(want)
	p.removeFiles() // a killed agent leaves its store
}

// asNobody gives the place to a user that is not root, and returns the command line that runs line
// as this user.
func asNobody(t *testing.T, p *place, line []string) []string {
	t.Helper()
	if os.Geteuid() != 0 {
		return line
	}
	return asUser(t, p, "65534", line)
}

// asUser is asNobody for a user with this id.
func asUser(t *testing.T, p *place, id string, line []string) []string {
	t.Helper()
	for i, word := range line { // this user may have no access to where they were built
		if word != *rdzvBin && word != self {
			continue
		}
		own := filepath.Join(p.root, filepath.Base(word))
		if out, err := exec.Command("cp", word, own).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		line[i] = own
	}
	if out, err := exec.Command("chown", "-R", id, p.root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.env = slices.DeleteFunc(p.env, func(entry string) bool {
		return strings.HasPrefix(entry, "OMPI_ALLOW_RUN_AS_ROOT")
	})
	user := []string{"setpriv", "--reuid", id, "--regid", id, "--clear-groups"}
	return append(user, line...)
}
