package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// While a job waits for its last node, and while it runs, strangers on its own host and on another try everything at the
// store's port. None gets in; the job's own agent does, and a failure still ends the job at once.
func TestAttacksOnTheStore(t *testing.T) {
	b := newBed(t, 3)
	s := b.stay(t)
	const port = "29888"
	line := func() []string {
		return rdzvExec([]string{"--nodes", "2", "--store", "node1", "--port-range", port + "-" + port, "--join-timeout", "60s"}, actor("family", s.dir("job")))
	}
	first := s.on(1, line()...)
	first.waitFor("no other agent has connected after 3s")
	attackers := map[string]*process{}
	for _, how := range attackNames() {
		attackers["node3: "+how] = s.on(3, self, "attack", how, "10.77.0.11:"+port)
	}
	for _, how := range []string{"connections", "nocert", "slow"} {
		attackers["node1: "+how] = s.on(1, self, "attack", how, "10.77.0.11:"+port)
	}
	for _, a := range attackers {
		a.waitFor("round 1:")
	}
	coming := time.Now()
	second := s.on(2, line()...)
	workers := records(t, filepath.Join(s.root, "job"), 2)
	t.Logf("under attack the second agent and both workers were there after %v", time.Since(coming).Round(time.Millisecond))

	failing := time.Now()
	if err := syscall.Kill(workers[1].PID, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for _, agent := range []*process{first, second} {
		if code := agent.code(); code != workerCode {
			t.Errorf("an agent ended with %d, want %d", code, workerCode)
		}
	}
	took := time.Since(failing)
	t.Logf("under attack a failure ended the job after %v", took.Round(time.Millisecond))
	if took > 20*time.Second {
		t.Errorf("a failure ended the job only after %v", took)
	}
	for name, a := range attackers {
		kill(a.pid())
		<-a.done
		lines, _ := a.said()
		t.Logf("%s saw: %s", name, strings.Join(lines, "; "))
		if got := a.linesWith("got in"); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Two nodes with different tokens: both say so at once, in words that name the other and help.
func TestDifferentTokens(t *testing.T) {
	b := newBed(t, 2)
	for _, c := range []struct {
		name  string
		flags []string
	}{{"store", []string{"--store", "node1"}}, {"multicast", nil}} {
		t.Run(c.name, func(t *testing.T) {
			s := b.stay(t)
			line := rdzvExec(append([]string{"--nodes", "2", "--join-timeout", "2s"}, c.flags...), worker("record", s.dir("job")))
			var agents []*process
			for host, token := range []string{strings.Repeat("5ec7e7", 6), strings.Repeat("0ddba1", 6)} {
				agents = append(agents, s.startWith([]string{"RDZV_TOKEN=" + token}, b.on(host+1, line...)...))
			}
			for i, agent := range agents {
				agent.waitFor("has a different token: copy ~/.config/rdzv/token from one node to the other, or start rdzv here with RDZV_JOIN=")
				t.Logf("node%d said so after %v", i+1, time.Since(agent.started).Round(time.Millisecond))
				if first := agent.linesWith("rdzv:")[0]; !strings.Contains(first, "has a different token") {
					t.Errorf("agent %d said %q before, having given up", i, first)
				}
				if len(agent.linesWith(fmt.Sprintf("node%d (10.77.0.1%d) has a different token", 2-i, 2-i))) == 0 {
					t.Errorf("agent %d did not name the other", i)
				}
			}
			for _, agent := range agents {
				if code := agent.code(); code != 124 {
					t.Errorf("an agent ended with %d, want 124", code)
				}
			}
			if n := count(s.dir("job")); n != 0 {
				t.Errorf("%d workers have started", n)
			}
		})
	}
}

// The token, the key of the job and the join line stand nowhere but where they must: not on a command line, in a
// worker's environment, in a message, or on disk beside the token file.
func TestSecretsAreNotVisible(t *testing.T) {
	b := newBed(t, 2)
	s := b.stay(t)
	token := strings.Repeat("5ec7e7", 6)
	end := filepath.Join(s.dir("both"), "end")
	line := rdzvExec([]string{"-v", "--nodes", "2", "--join-timeout", "60s"}, worker("until", s.dir("job"), end))
	first := s.startOnTerminal([]string{"RDZV_TOKEN=" + token}, b.on(1, line...)...)
	join := joinLine(first)
	second := s.startWith([]string{join}, b.on(2, line...)...)
	all := records(t, s.dir("job"), 2)

	_, key, _ := strings.Cut(join, "/")
	secrets := []string{token, key}
	for _, pid := range s.alive() {
		for _, word := range commandLine(pid) {
			checkHasNone(t, fmt.Sprintf("the command line of process %d", pid), word, secrets)
		}
		if environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil && slices.ContainsFunc(all, func(r record) bool { return r.PID == pid }) {
			checkHasNone(t, "a worker's environment", string(environ), secrets)
		}
	}
	files := filesWith(t, s.root, secrets)
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, agent := range []*process{first, second} {
		if code := agent.code(); code != 0 {
			t.Errorf("an agent ended with %d", code)
		}
		lines, _ := agent.said()
		for _, said := range lines {
			if !strings.Contains(said, "RDZV_JOIN=") {
				checkHasNone(t, "a message", said, secrets)
			}
		}
	}
	if len(files) > 0 {
		t.Errorf("secrets are on disk: %q", files)
	}
}

// The join line holds the job's key: it is printed on a terminal, and kept out of log files.
func TestJoinLineOnATerminalOnly(t *testing.T) {
	b := newBed(t, 1)
	s := b.stay(t)
	line := func(job string) []string {
		flags := []string{"--nodes", "2", "--join-timeout", "6s", "--job", job}
		return b.on(1, rdzvExec(flags, worker("record", s.dir("job")))...)
	}
	log, screen := s.start(line("log")...), s.startOnTerminal(nil, line("screen")...)
	for agent, want := range map[*process]int{log: 0, screen: 1} {
		agent.waitFor("start every node with --store 10.77.0.11")
		if code := agent.code(); code != 124 {
			t.Errorf("an agent ended with %d, want 124", code)
		}
		if got := agent.linesWith("RDZV_JOIN="); len(got) != want {
			t.Errorf("%d lines with the job's key, want %d: %q", len(got), want, got)
		}
	}
}

func checkHasNone(t *testing.T, what, text string, secrets []string) {
	t.Helper()
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%s holds a secret: %q", what, text)
		}
	}
}

// filesWith lists the files under a directory that hold one of the texts.
func filesWith(t *testing.T, root string, texts []string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil && slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(string(content), text) }) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

// A token file that others can read, that is another's, or that is a link, is refused by its name; many that need one at
// once make one.
func TestTokenFile(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"readable": func(path string) error { return os.Chmod(path, 0o644) },
		"writable": func(path string) error { return os.Chmod(path, 0o620) },
		"linkToReadable": func(path string) error {
			return errors.Join(os.Rename(path, path+".real"), os.Chmod(path+".real", 0o644), os.Symlink(path+".real", path))
		},
		"directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"anothers":  giveToOtherUser,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			file := filepath.Join(p.dir("data"), "token")
			if err := os.WriteFile(file, []byte(strings.Repeat("5ec7e7", 6)+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := spoil(file); err != nil {
				t.Fatal(err)
			}
			job := p.start(rdzvExec([]string{"--nodes", "2", "--token-file", file, "--join-timeout", "5s"}, []string{"true"})...)
			if code := job.code(); code != 125 {
				t.Errorf("rdzv ended with %d, want 125", code)
			}
			if len(job.linesWith("rdzv: cannot", file)) != 1 {
				t.Error("no line, or several, name the file")
			}
			if belongs := "it belongs to user 65533, not to user " + strconv.Itoa(os.Geteuid()); name == "anothers" && len(job.linesWith(belongs)) != 1 {
				t.Errorf("no line says %q", belongs)
			}
		})
	}
	// Whoever can lay a link where the token will be made does not choose where it is made.
	t.Run("linkToNowhere", func(t *testing.T) {
		p := newPlace(t)
		p.dir("home/.config")
		file, elsewhere := filepath.Join(p.dir("home/.config/rdzv"), "token"), filepath.Join(p.dir("data"), "elsewhere")
		if err := os.Symlink(elsewhere, file); err != nil {
			t.Fatal(err)
		}
		job := p.start(rdzvExec([]string{"--nodes", "2", "--join-timeout", "5s"}, []string{"true"})...)
		if code := job.code(); code != 125 {
			t.Errorf("rdzv ended with %d, want 125", code)
		}
		if len(job.linesWith("rdzv: cannot", file)) != 1 {
			t.Error("no line, or several, name the file")
		}
		if _, err := os.Lstat(elsewhere); err == nil {
			t.Error("a token was made where the link leads")
		}
	})
	t.Run("race", func(t *testing.T) {
		p := newPlace(t)
		const n = 20
		line := rdzvExec([]string{"--nodes", strconv.Itoa(n), "--store", freeAddress(t), "--join-timeout", "60s"}, worker("record", p.dir("job")))
		var agents []*process
		for range n {
			agents = append(agents, p.start(line...))
		}
		for _, agent := range agents {
			if code := agent.code(); code != 0 {
				t.Errorf("an agent ended with %d", code)
			}
		}
		checkToken(t, filepath.Join(p.root, "home/.config/rdzv"))
	})
}

// giveToOtherUser makes a file another user's, in a way in which its owner before can still read it. It takes root, or sudo.
func giveToOtherUser(path string) error {
	if err := os.Chmod(path, 0o644); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		return os.Chown(path, 65533, -1)
	}
	return exec.Command("sudo", "-n", "chown", "65533", path).Run()
}

// Without a secret, every start says so; no other start does.
func TestInsecureWarning(t *testing.T) {
	b := newBed(t, 2)
	s := b.stay(t)
	line := s.exec("--nodes", "2", "--insecure", "--quiet")
	agents := []*process{s.on(1, line...), s.on(2, line...)}
	for _, agent := range agents {
		if code := agent.code(); code != 0 {
			t.Errorf("an agent ended with %d", code)
		}
		if len(agent.linesWith("rdzv: --insecure:", "neither authenticated nor encrypted")) != 1 {
			t.Error("an agent has not said that it has no secret")
		}
	}
	checkLayout(t, records(t, s.dir("job"), 2), make(layout, 2))
	run := s.on(1, s.openMPI(append([]string{"--host", "node1:1,node2:1", "-np", "2"}, rdzvExec([]string{"--insecure"}, []string{"true"})...)...)...)
	if code := run.code(); code != 0 || len(run.linesWith("rdzv: --insecure:")) != 1 {
		t.Errorf("under mpirun the job ended with %d, and said it %d times", code, len(run.linesWith("--insecure:")))
	}
}

var tried = regexp.MustCompile(`10\.77\.0\.11 port [0-9,]+: connection refused`)
