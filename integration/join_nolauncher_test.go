package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Without a launcher the same command line is started on every node, in any order. The agents find
// each other by the name of the store's host, by the line that the first agent prints, or by
// multicast with the token that all have.
func TestJoinWithoutLauncher(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 5, "--second", "--docker", "--debian")
	for _, store := range []string{"node2", "10.77.0.12", "10.78.0.12:29777"} {
		t.Run("store/"+store, func(t *testing.T) { c.newPlace(t).joinAtStore(store) })
	}
	t.Run("joinLine", func(t *testing.T) { c.newPlace(t).joinWithLine() })
	t.Run("joinLine/store", func(t *testing.T) { c.newPlace(t).joinWithLine("--store", "node1") })
	t.Run("joinLine/command", func(t *testing.T) { c.newPlace(t).joinWithOtherCommand() })
	for _, order := range [][]int{{1, 2}, {2, 1}, {3, 1, 5, 2, 4}} {
		t.Run(fmt.Sprintf("multicast/from%dOf%d", order[0], len(order)), func(t *testing.T) {
			c.newPlace(t).joinInOrder(order)
		})
	}
	runConcurrently(t, []scenario{
		{"multicast/late", func(t *testing.T) { c.newPlace(t).joinLate() }},
		{"multicast/apart", func(t *testing.T) { c.newPlace(t).joinApart() }},
	})
}

func (p *clusterPlace) joinAtStore(store string) {
	line := p.exec("--nodes", "2", "--nproc-per-node", "2", "--store", store)
	one, two := p.on(1, line...), p.on(2, line...)
	all := p.check(layout{"node2", "node2", "node1", "node1"}, two, one)
	if host, _, _ := strings.Cut(store, ":"); strings.HasPrefix(host, "10.") {
		all[0].checkEnv(p.t, map[string]string{"MASTER_ADDR": host})
	}
}

// joinWithLine starts the second agent without the token: what the first one prints on its terminal
// is enough.
func (p *clusterPlace) joinWithLine(flags ...string) {
	line := p.exec(append(flags, "--nodes", "2", "--nproc-per-node", "2")...)
	token := "RDZV_TOKEN=" + oneToken
	first := p.startOnTerminal([]string{token}, p.cluster.on(1, line...)...)
	second := p.startWith([]string{joinLine(first)}, p.cluster.on(2, line...)...)
	checkCodes(0, first, second)
	checkLayout(p.t, records(p.t, p.dir("job"), 4), layout{"node1", "node1", "node2", "node2"})
}

// joinWithOtherCommand starts another command with the line of the first agent: both say why no worker
// starts, at once.
func (p *clusterPlace) joinWithOtherCommand() {
	exec := []string{*rdzvBin, "exec", "--nodes", "2", "--", "touch", filepath.Join(p.dir("job"), "started")}
	first := p.startOnTerminal([]string{"RDZV_TOKEN=" + oneToken}, p.cluster.on(1, exec...)...)
	second := p.startWith([]string{joinLine(first)}, p.cluster.on(2, append(exec, "more")...)...)
	checkCodes(121, first, second)
	for _, agent := range []*process{first, second} {
		const reason = "the command differs from that of the node that printed RDZV_JOIN: touch"
		if len(agent.linesWith(reason)) == 0 {
			p.t.Errorf("an agent printed %q, want %q", agent.linesWith("rdzv: "), reason)
		}
	}
	if _, err := os.Stat(exec[len(exec)-1]); err == nil {
		p.t.Error("a worker has started")
	}
}

func (p *clusterPlace) joinInOrder(hosts []int) {
	line := p.exec("--nodes", strconv.Itoa(len(hosts)), "--nproc-per-node", "2")
	var agents []*process
	for _, host := range hosts {
		agents = append(agents, p.on(host, line...))
	}
	p.check(make(layout, 2*len(hosts)), agents...)
}

// joinLate starts each agent after the one before has stopped searching at short intervals.
func (p *clusterPlace) joinLate() {
	line := p.exec("--nodes", "3")
	first := p.on(2, line...)
	first.waitFor("no other agent has connected after 3s")
	second := p.on(1, line...)
	waitForAny(p.t, "2 of 3 agents joined (from node1, node2)", first, second)
	third := p.on(5, line...)
	checkCodes(0, first, second, third)
	checkLayout(p.t, records(p.t, p.dir("job"), 3), make(layout, 3))
}

// joinApart starts agents on two pairs of hosts that are not connected. When the agents of each pair
// have found each other, the pairs are connected.
func (p *clusterPlace) joinApart() {
	p.cluster.hosts("part", "3")
	p.cluster.hosts("part", "4")
	line := p.exec("--nodes", "4")
	var agents []*process
	for host := 1; host <= 4; host++ {
		agents = append(agents, p.on(host, line...))
	}
	waitForAny(p.t, "waiting for more agents with those of node2", agents...)
	waitForAny(p.t, "waiting for more agents with those of node4", agents...)
	p.cluster.hosts("heal", "3")
	p.cluster.hosts("heal", "4")
	checkCodes(0, agents...)
	checkLayout(p.t, records(p.t, p.dir("job"), 4), make(layout, 4))
}

// joinLine waits for the variable that an agent prints for the others.
func joinLine(agent *process) string {
	agent.t.Helper()
	agent.waitFor("RDZV_JOIN=")
	_, line, _ := strings.Cut(agent.linesWith("RDZV_JOIN=")[0], "RDZV_JOIN=")
	return "RDZV_JOIN=" + strings.Fields(line)[0]
}

// waitForAny waits until one of the processes has printed the text.
func waitForAny(t *testing.T, text string, some ...*process) {
	t.Helper()
	printed := func() bool {
		return slices.ContainsFunc(some, func(p *process) bool { return len(p.linesWith(text)) > 0 })
	}
	if !eventually(waitLimit, printed) {
		t.Errorf("no process has printed %q within %v", text, waitLimit)
	}
}
