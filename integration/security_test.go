package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Processes without the key, on the store's host and on another, attack the store's port in all
// ways, while a job waits for its last node and while it runs. No attack succeeds, the job's own
// agent joins, and a failure still ends the job.
func TestAttacksOnTheStore(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	p := c.newPlace(t)
	const port, address = "29888", "10.77.0.11:29888"
	flags := []string{"--nodes", "2", "--store", "node1", "--port-range", port + "-" + port,
		"--join-timeout", "60s"}
	line := rdzvExec(flags, worker("session", p.dir("job")))
	first := p.on(1, line...)
	first.waitFor("no other agent has connected after 3s")
	attackers := map[string]*process{}
	for _, kind := range attackNames() {
		attackers["node3: "+kind] = p.on(3, self, "attack", kind, address)
	}
	for _, kind := range []string{"connections", "nocert", "slow"} {
		attackers["node1: "+kind] = p.on(1, self, "attack", kind, address)
	}
	for _, a := range attackers {
		a.waitFor("round 1:")
	}
	second := p.on(2, line...)
	workers := records(t, p.dir("job"), 2)
	joined := time.Since(second.started)
	t.Logf("the second agent and both workers ran after %v", joined)

	failed := time.Now()
	if err := syscall.Kill(workers[1].PID, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	checkCodes(failCode, first, second)
	took := time.Since(failed)
	t.Logf("the failure ended the job after %v", took)
	if took > 20*time.Second {
		t.Errorf("the failure ended the job after %v, want at most 20s", took)
	}
	for name, a := range attackers {
		kill(a.pid())
		<-a.done
		lines, _ := a.output()
		t.Logf("%s: %s", name, strings.Join(lines, "; "))
		if succeeded := a.linesWith(success); len(succeeded) > 0 {
			t.Errorf("the attack %s succeeded: %q", name, succeeded)
		}
	}
	attackRow(t, strings.Join(attackNames(), ", ")+" on the store's port", 3, joined,
		fmt.Sprintf("admitted none; a failure ended the job after %.2f s", took.Seconds()))
}

// Two nodes have different tokens: both agents report this at once, name each other and say what to
// copy where. They wait until --join-timeout.
func TestDifferentTokens(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	for name, flags := range map[string][]string{"store": {"--store", "node1"}, "multicast": nil} {
		t.Run(name, func(t *testing.T) {
			p := c.newPlace(t)
			flags := append([]string{"--nodes", "2", "--join-timeout", "4s"}, flags...)
			line := rdzvExec(flags, worker("record", p.dir("job")))
			tokens := []string{oneToken, otherToken}
			var agents []*process
			for i, token := range tokens {
				env := []string{"RDZV_TOKEN=" + token}
				agents = append(agents, p.startWith(env, c.on(i+1, line...)...))
			}
			hints := []string{oneToTheOther, oneToTheOther}
			if name == "store" {
				hints[1] = "set RDZV_TOKEN here to the token of node1, "
			}
			for i, agent := range agents {
				checkDifferentToken(agent, fmt.Sprintf("node%d (10.77.0.1%d)", 2-i, 2-i), hints[i])
			}
			checkCodes(124, agents...)
			checkNumberOfWorkers(t, p.dir("job"), 0)
		})
	}
}

const oneToTheOther = "copy the token of one node to the other (here it is RDZV_TOKEN)"

// checkDifferentToken checks what an agent prints, and that it prints the hint once.
func checkDifferentToken(agent *process, other, hint string) {
	agent.t.Helper()
	agent.waitFor("rdzv: timed out after 4s (--join-timeout): ")
	if n := len(agent.linesWith("rdzv: hint: " + hint)); n != 1 {
		agent.t.Errorf("an agent printed %q %d times, want once", hint, n)
	}
	if lines := agent.linesWith("no other agent has connected after"); len(lines) > 0 {
		agent.t.Errorf("an agent printed %q after the reason", lines)
	}
	want := other + " has a different token"
	if first := agent.linesWith("rdzv:")[0]; !strings.Contains(first, want) {
		agent.t.Errorf("the first line of an agent is %q, want %q in it", first, want)
	}
}

// The token, the job key and the join line are visible only where they must be: not on a command
// line, in a worker's environment, in a message, or in a file other than the token's.
func TestSecretsAreNotVisible(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	p := c.newPlace(t)
	token := oneToken
	end := filepath.Join(p.dir("both"), "end")
	flags := []string{"-v", "--nodes", "2", "--join-timeout", "60s"}
	line := rdzvExec(flags, worker("until", p.dir("job"), end))
	first := p.startOnTerminal([]string{"RDZV_TOKEN=" + token}, c.on(1, line...)...)
	join := joinLine(first)
	second := p.startWith([]string{join}, c.on(2, line...)...)
	all := records(t, p.dir("job"), 2)

	_, key, _ := strings.Cut(join, "/")
	secrets := []string{token, key}
	for _, pid := range p.marked() {
		for _, word := range commandLine(pid) {
			checkHasNone(t, fmt.Sprintf("the command line of process %d", pid), word, secrets)
		}
	}
	for _, r := range all {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", r.PID))
		if err != nil {
			t.Fatal(err)
		}
		checkHasNone(t, "the environment of a worker", string(environ), secrets)
	}
	if files := filesWith(t, p.root, secrets); len(files) > 0 {
		t.Errorf("the files %q contain secrets", files)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	checkCodes(0, first, second)
	for _, agent := range []*process{first, second} {
		lines, _ := agent.output()
		for _, message := range lines {
			if !strings.Contains(message, "RDZV_JOIN=") {
				checkHasNone(t, "a message", message, secrets)
			}
		}
	}
}

// The join line contains the job key: an agent prints it on a terminal, but not into a file.
func TestJoinLineOnATerminalOnly(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	p := c.newPlace(t)
	line := func(job string) []string {
		flags := []string{"--nodes", "2", "--join-timeout", "6s", "--job", job}
		return c.on(1, rdzvExec(flags, worker("record", p.dir("job")))...)
	}
	log, screen := p.start(line("log")...), p.startOnTerminal(nil, line("screen")...)
	log.waitFor("start every node with --store 10.77.0.11")
	for agent, want := range map[*process]int{log: 0, screen: 1} {
		agent.checkCode(124)
		if got := agent.linesWith("RDZV_JOIN="); len(got) != want {
			t.Errorf("an agent printed %d lines with the job key, want %d: %q", len(got), want, got)
		}
	}
}

func checkHasNone(t *testing.T, what, text string, secrets []string) {
	t.Helper()
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%s contains a secret: %q", what, text)
		}
	}
}

// filesWith lists the files below a directory that contain one of the texts.
func filesWith(t *testing.T, root string, texts []string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		contains := func(text string) bool { return strings.Contains(string(content), text) }
		if err == nil && slices.ContainsFunc(texts, contains) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

// With --insecure, every job prints a warning once per agent, or once under a launcher.
func TestInsecureWarning(t *testing.T) {
	t.Parallel()
	p := newCluster(t, 2).newPlace(t)
	line := p.exec("--nodes", "2", "--insecure", "--quiet")
	agents := []*process{p.on(1, line...), p.on(2, line...)}
	checkCodes(0, agents...)
	for _, agent := range agents {
		if n := len(agent.linesWith("rdzv: --insecure:",
			"neither authenticated nor encrypted")); n != 1 {
			t.Errorf("an agent printed the warning %d times, want once", n)
		}
	}
	checkLayout(t, records(t, p.dir("job"), 2), make(layout, 2))

	args := []string{"--host", "node1:1,node2:1", "-np", "2"}
	exec := rdzvExec([]string{"--insecure"}, []string{"true"})
	job := p.on(1, p.openMPI(append(args, exec...)...)...)
	job.checkCode(0)
	if n := len(job.linesWith("rdzv: --insecure:")); n != 1 {
		t.Errorf("under mpirun the warning was printed %d times, want once", n)
	}
}
