package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// Two tokens.
const (
	oneToken   = "5ec7e7b1940d8f26a37ce0d15b9842f6"
	otherToken = "0ddba17c4e9023f5b86a1de7340fc952"
)

// badTokenFiles make a token file that rdzv must not use.
var badTokenFiles = map[string]func(path string) error{
	"readable": func(path string) error { return os.Chmod(path, 0o644) },
	"writable": func(path string) error { return os.Chmod(path, 0o620) },
	"linkToReadable": func(path string) error {
		target := path + ".target"
		return errors.Join(os.Rename(path, target), os.Chmod(target, 0o644),
			os.Symlink(target, path))
	},
	"directory": func(path string) error {
		return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
	},
	"otherUser": giveToOtherUser,
}

// giveToOtherUser makes another user the owner of a file that everybody can read. It needs root or
// sudo.
func giveToOtherUser(path string) error {
	if err := os.Chmod(path, 0o644); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		return os.Chown(path, 65533, -1)
	}
	return exec.Command("sudo", "-n", "chown", "65533", path).Run()
}

// rdzv refuses a token file that others can read or write, or that is not a file of this user, and
// names it.
func TestTokenFile(t *testing.T) {
	for name, makeBad := range badTokenFiles {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			file := filepath.Join(p.dir("data"), "token")
			token := []byte(oneToken + "\n")
			if err := os.WriteFile(file, token, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := makeBad(file); err != nil {
				t.Fatal(err)
			}
			job := waitForNode(p, "--token-file", file)
			checkTokenError(job, file)
			if name == "otherUser" {
				checkTokenError(job,
					"it belongs to user 65533, not to user "+strconv.Itoa(os.Geteuid()))
			}
		})
	}
}

// waitForNode starts an agent that waits for a second one.
func waitForNode(p *place, flags ...string) *process {
	flags = append([]string{"--nodes", "2", "--join-timeout", "5s"}, flags...)
	return p.start(rdzvExec(flags, []string{"true"})...)
}

func checkTokenError(job *process, text string) {
	job.t.Helper()
	job.checkCode(125)
	if lines := job.linesWith("rdzv: cannot", text); len(lines) != 1 {
		job.t.Errorf("rdzv printed %q, want one error with %q", job.linesWith("rdzv:"), text)
	}
}

// A user who can make a link in place of the token cannot choose where the token is made.
func TestTokenFileIsADanglingLink(t *testing.T) {
	p := newPlace(t)
	p.dir("home/.config")
	file := filepath.Join(p.dir("home/.config/rdzv"), "token")
	target := filepath.Join(p.dir("data"), "target")
	if err := os.Symlink(target, file); err != nil {
		t.Fatal(err)
	}
	checkTokenError(waitForNode(p), file)
	if _, err := os.Lstat(target); err == nil {
		t.Error("a token was made at the target of the link, want none")
	}
}

// Two users start the same command on two nodes: their agents are of different jobs, and neither
// reports the other.
func TestUsersDoNotMeet(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	p, q := c.newPlace(t), c.newPlace(t)
	line := rdzvExec([]string{"--nodes", "2", "--join-timeout", "4s"}, []string{"true"})
	first := p.on(1, line...)
	asOther := []string{"env", "-C", "/"}
	if os.Geteuid() != 0 {
		asOther = append(asOther, "unshare", "--map-root-user")
	}
	second := q.on(2, append(asOther, asNobody(t, q.place, line)...)...)
	checkCodes(124, first, second)
	for i, agent := range []*process{first, second} {
		if lines := agent.linesWith(fmt.Sprint("node", 2-i)); len(lines) > 0 {
			t.Errorf("agent %d knows of the other user's: %q", i, lines)
		}
	}
}

// Many agents that need a token at the same time make one.
func TestTokenFileRace(t *testing.T) {
	p := newPlace(t)
	const n = 20
	flags := []string{"--nodes", strconv.Itoa(n), "--store", freeAddress(t), "--join-timeout",
		"60s"}
	var agents []*process
	for _, line := range onOneHost(n, flags, worker("record", p.dir("job"))) {
		agents = append(agents, p.start(line...))
	}
	checkCodes(0, agents...)
	checkToken(t, filepath.Join(p.root, "home/.config/rdzv"))
}
