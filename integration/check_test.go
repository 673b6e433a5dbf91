package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// checkOn starts a check on three hosts; setup is shell code for one of them, by number.
func (c *cluster) checkOn(flags string, setup map[int]string) (agents []*process) {
	for k := range 3 {
		script := setup[k+1] + "\nexec " + *rdzvBin + " check --nodes 3 --store node1 " + flags +
			" -- python3 main.py"
		agents = append(agents, c.start(c.on(k+1, "sh", "-c", script)...))
	}
	return agents
}

// report are the lines of the agents, with one space between words. One agent prints the table.
func report(t *testing.T, agents []*process) (lines []string) {
	t.Helper()
	tables := 0
	for _, agent := range agents {
		for _, line := range agent.linesWith("") {
			line = strings.Join(strings.Fields(line), " ")
			lines = append(lines, line)
			if strings.HasPrefix(line, "address ") {
				tables++
			}
		}
	}
	if tables != 1 {
		t.Errorf("%d tables, want one:\n%s", tables, strings.Join(lines, "\n"))
	}
	return lines
}

// The table of three hosts shows in what one of them differs.
func TestCheckDifferences(t *testing.T) {
	c := newCluster(t, 3)
	dir := c.dir("job")
	for _, name := range []string{"good/main.py", "other/main.py", "bin/x"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	good := "cd " + dir + "/good\n"
	agents := c.checkOn("", map[int]string{
		1: good,
		2: good + "ln -s $(command -v python3) " +
			"" + dir + "/bin/python3; PATH=" + dir + "/bin:$PATH\n" +
			"export NCCL_DEBUG=INFO",
		3: "cd " + dir + "/other; mount -o remount,size=1m /dev/shm",
	})
	checkCodes(0, agents...)
	lines := report(t, agents)
	for _, want := range []string{
		"3 nodes: node1-node3, 3 workers",
		"address 10.77.0.11-10.77.0.13",
		"interface eth0 (leads to the store)",
		"/other on node3",
		"/bin/python3 on node2",
		"1 MiB, 1 MiB free on node3",
		"! NCCL_DEBUG not set on node1, node3",
		"INFO on node2",
		"warning: /dev/shm has only 1 MiB free of 1 MiB",
		"script main.py, NCCL_DEBUG",
	} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, want) }) {
			t.Errorf("no line has %q:\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

// If an agent cannot join, the table is that of the others, and all agents exit with 1.
func TestCheckWithoutOneHost(t *testing.T) {
	for name, fault := range map[string]string{
		"token": "export RDZV_TOKEN=0123456789abcdefghijklmnopqrstuvwxyzABCDEFG", "link": "",
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3)
			if fault == "" {
				c.hosts("cut", "3")
			}
			agents := c.checkOn("--join-timeout 5s", map[int]string{3: fault})
			checkCodes(1, agents...)
			lines := report(t, agents)
			for _, want := range []string{
				"2 nodes: node1, node2, 2 workers", "only 2 of 3 agents joined",
				"rdzv: timed out after 5s (--join-timeout): 2 of 3 agents joined",
			} {
				if !slices.ContainsFunc(lines, func(l string) bool {
					return strings.HasPrefix(l, want)
				}) {
					t.Errorf("no line begins with %q:\n%s", want, strings.Join(lines, "\n"))
				}
			}
		})
	}
}

// The nodes measure the connections between them: two that a firewall separates have an error,
// although both reach the store, and besides that of a node that lacks the script.
func TestCheckConnections(t *testing.T) {
	c := newCluster(t, 3)
	dir := c.dir("job")
	for _, fault := range []string{"none", "firewall"} {
		t.Run(fault, func(t *testing.T) {
			main := filepath.Join(dir, "main.py")
			if err := os.WriteFile(main, nil, 0o666); err != nil {
				t.Fatal(err)
			}
			code, setup := 0, map[int]string{1: "cd " + dir, 2: "cd " + dir, 3: "cd " + dir}
			want := []string{
				"connections 6 of 6 between the nodes", "round trip 0.", "clock offset at most 0.",
			}
			if fault == "firewall" {
				c.hosts("isolate", "2")
				c.hosts("isolate", "3")
				code, setup[2] = 1, "cd /"
				hint := "hint: the workers of all nodes connect to each other: let firewalls"
				want = []string{
					"! connections 4 of 6 between the nodes", hint,
					"error: cannot connect to node2 (10.77.0.12): connection timed out (on node3)",
					"error: cannot connect to node3 (10.77.0.13): connection timed out (on node2)",
					`error: cannot start: script "main.py" is missing in "/" (on node2)`,
				}
			}
			agents := c.checkOn("", setup)
			checkCodes(code, agents...)
			lines := report(t, agents)
			for _, begin := range want {
				if !slices.ContainsFunc(lines, func(l string) bool {
					return strings.HasPrefix(l, begin)
				}) {
					t.Errorf("no line begins with %q:\n%s", begin, strings.Join(lines, "\n"))
				}
			}
		})
	}
}
