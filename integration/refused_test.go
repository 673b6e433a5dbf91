package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Two nodes run different commands: the agent that searches at --store names the other, once, and
// again in the reason for its end. The other one names it too, and goes on waiting.
func TestDifferentCommands(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	t.Run("multicast", func(t *testing.T) { c.newPlace(t).differentCommands() })
	p := c.newPlace(t)
	flags := []string{"--nodes", "2", "--store", "node1", "--join-timeout"}
	host := p.on(1, rdzvExec(append(flags, "1m"), []string{"true"})...)
	host.waitFor("no other agent has connected after 3s")
	other := p.on(2, rdzvExec(append(flags, "6s"), []string{"false"})...)
	other.checkCode(124)
	const who = "node1 (10.77.0.11)"
	for _, want := range []string{
		"rdzv: " + who + " runs a different command or --nodes; if both belong to one job, " +
			"give them the same --job NAME",
		"rdzv: timed out after 6s (--join-timeout): found no agent of this job, but " + who +
			", which runs a different command or --nodes",
		`rdzv: hint: host "node1" answers, but no agent there is of this job: all nodes must run `,
	} {
		if n := len(other.linesWith(want)); n != 1 {
			t.Errorf("the agent printed %q %d times, want once: %q", want, n,
				other.linesWith("rdzv:"))
		}
	}
	host.waitFor("rdzv: node2 (10.77.0.12) runs a different command or --nodes; ")
	host.interrupt()
	host.checkCode(130)
}

// Two nodes name different hosts with --store: both say so, and nothing else about why they are
// alone.
func TestDifferentStores(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	p := c.newPlace(t)
	exec := func(host int) *process {
		flags := []string{"--nodes", "2", "--join-timeout", "6s", "--store", fmt.Sprint("node", host)}
		return p.on(host, rdzvExec(flags, []string{"true"})...)
	}
	agents := []*process{exec(1), exec(2)}
	checkCodes(124, agents...)
	for i, agent := range agents {
		other := fmt.Sprintf("rdzv: node%d (10.77.0.1%d) hosts another store for the same command; "+
			"for one job give all nodes the same --store", 2-i, 2-i)
		if n := len(agent.linesWith(other)); n != 1 {
			t.Errorf("an agent printed %q %d times, want once: %q", other, n, agent.linesWith("rdzv:"))
		}
		if lines := agent.linesWith("no other agent has connected after"); len(lines) > 0 {
			t.Errorf("an agent printed %q", lines)
		}
	}
}

// differentCommands checks that agents that know of each other's command do not say anything else
// about why they are alone.
func (p *clusterPlace) differentCommands() {
	flags := []string{"--nodes", "2", "--join-timeout", "7s"}
	agents := []*process{
		p.on(1, rdzvExec(flags, []string{"true"})...), p.on(2, rdzvExec(flags, []string{"false"})...),
	}
	checkCodes(124, agents...)
	for _, agent := range agents {
		for text, want := range map[string]int{
			"runs a different command or --nodes; if both belong": 1, // at once
			"which runs a different command or --nodes (5s)":      1,
			"no other agent has connected after":                  0,
			"--store":                                             0,
		} {
			if lines := agent.linesWith("rdzv:", text); len(lines) != want {
				p.t.Errorf("an agent printed %q, want %d lines with %q", lines, want, text)
			}
		}
	}
}

// A token file on another node differs from that of the store's host: the agent there gives up
// after 30 s and names both. The host goes on waiting.
func TestRefusedAgent(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	p := c.newPlace(t)
	tokens := []string{filepath.Join(p.root, "one"), filepath.Join(p.root, "two")}
	var agents []*process
	for i, file := range tokens {
		text := []string{oneToken, otherToken}[i]
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		line := p.exec("--nodes", "2", "--store", "node1", "--token-file", file, "--join-timeout",
			"10m")
		agents = append(agents, p.on(i+1, line...))
	}
	host, other := agents[0], agents[1]
	other.checkCode(125)
	if took := time.Since(other.started); took < 30*time.Second {
		t.Errorf("the agent ended after %v, want 30s", took)
	}
	for _, want := range []string{
		"rdzv: node1 (10.77.0.11) has a different token",
		"rdzv: hint: copy the token of node1, which prints where it is " +
			"(by default ~/.config/rdzv/token), to " + tokens[1] + " here, ",
		"rdzv: node1 (10.77.0.11) has refused this agent for 30s: its token is not the one in " +
			"" + tokens[1],
	} {
		if n := len(other.linesWith(want)); n != 1 {
			t.Errorf("the agent printed %q %d times, want once: %q", want, n,
				other.linesWith("rdzv:"))
		}
	}
	host.waitFor("copy the token of one node to the other (here it is " + tokens[0] + ")")
	host.interrupt()
	host.checkCode(130)
}
