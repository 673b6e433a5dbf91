package integration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Without a launcher the same line is started on every node, in any order: with the name of the store's host, with the line that the
// first node prints, or with nothing but the token that all share.
func TestJoinWithoutLauncher(t *testing.T) {
	b := newBed(t, 5, "--second", "--docker", "--debian")

	for _, store := range []string{"node2", "10.77.0.12", "10.78.0.12:29777"} {
		t.Run("store/"+store, func(t *testing.T) {
			s := b.stay(t)
			line := s.exec("--nodes", "2", "--nproc-per-node", "2", "--store", store)
			one, two := s.on(1, line...), s.on(2, line...)
			all := s.check(layout{"node2", "node2", "node1", "node1"}, two, one)
			if host, _, _ := strings.Cut(store, ":"); strings.HasPrefix(host, "10.") && all[0].Env["MASTER_ADDR"] != host {
				t.Errorf("MASTER_ADDR is %q, want %s", all[0].Env["MASTER_ADDR"], host)
			}
		})
	}

	// The second node has no token; what the first one prints on its terminal is enough.
	t.Run("joinLine", func(t *testing.T) {
		s := b.stay(t)
		line := s.exec("--nodes", "2", "--nproc-per-node", "2")
		first := s.startOnTerminal([]string{"RDZV_TOKEN=" + strings.Repeat("5ec7e7", 6)}, b.on(1, line...)...)
		join := joinLine(first)
		second := s.startWith([]string{join}, b.on(2, line...)...)
		for _, agent := range []*process{first, second} {
			if code := agent.code(); code != 0 {
				t.Errorf("an agent ended with %d", code)
			}
		}
		checkLayout(t, records(t, s.root+"/job", 4), layout{"node1", "node1", "node2", "node2"})
	})

	for _, order := range [][]int{{1, 2}, {2, 1}, {3, 1, 5, 2, 4}} {
		t.Run(fmt.Sprintf("multicast/from%dOf%d", order[0], len(order)), func(t *testing.T) {
			s := b.stay(t)
			line := s.exec("--nodes", strconv.Itoa(len(order)), "--nproc-per-node", "2")
			var agents []*process
			for _, host := range order {
				agents = append(agents, s.on(host, line...))
			}
			s.check(make(layout, 2*len(order)), agents...)
		})
	}

	// One after another, each when the one before has given up on being found at once.
	late := func(t *testing.T) {
		s := b.stay(t)
		line := s.exec("--nodes", "3")
		first := s.on(2, line...)
		first.waitFor("no other agent has connected after 3s")
		second := s.on(1, line...)
		waitForEither(t, "2 of 3 agents joined (from node1, node2)", first, second)
		third := s.on(5, line...)
		for _, agent := range []*process{first, second, third} {
			if code := agent.code(); code != 0 {
				t.Errorf("an agent ended with %d", code)
			}
		}
		checkLayout(t, records(t, s.root+"/job", 3), layout{"", "", ""})
	}

	// Two pairs, each of which has begun to gather the job, then find each other.
	apart := func(t *testing.T) {
		s := b.stay(t)
		b.hosts("part", "3")
		b.hosts("part", "4")
		line := s.exec("--nodes", "4")
		var agents []*process
		for host := 1; host <= 4; host++ {
			agents = append(agents, s.on(host, line...))
		}
		waitForEither(t, "2 of 4 agents joined (from node1, node2)", agents...)
		waitForEither(t, "2 of 4 agents joined (from node3, node4)", agents...)
		b.hosts("heal", "3")
		b.hosts("heal", "4")
		for _, agent := range agents {
			if code := agent.code(); code != 0 {
				t.Errorf("an agent ended with %d", code)
			}
		}
		checkLayout(t, records(t, s.root+"/job", 4), make(layout, 4))
	}
	runConcurrently(t, []scenario{{"multicast/late", late}, {"multicast/apart", apart}})
}

// joinLine waits for the assignment that an agent prints for the others.
func joinLine(agent *process) string {
	agent.t.Helper()
	agent.waitFor("RDZV_JOIN=")
	_, line, _ := strings.Cut(agent.linesWith("RDZV_JOIN=")[0], "RDZV_JOIN=")
	return "RDZV_JOIN=" + strings.Fields(line)[0]
}

// waitForEither waits until one of the processes has said the text.
func waitForEither(t *testing.T, text string, some ...*process) {
	t.Helper()
	said := func() bool {
		return slices.ContainsFunc(some, func(p *process) bool { return len(p.linesWith(text)) > 0 })
	}
	if !eventually(waitLimit, said) {
		t.Errorf("nobody has said %q for %v", text, waitLimit)
	}
}
