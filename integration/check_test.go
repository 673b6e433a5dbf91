package integration

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// checkOn starts a check on three hosts; args are those of rdzv, setup is shell code for one of the
// hosts, by number.
func (c *cluster) checkOn(args string, setup map[int]string) (agents []*process) {
	for k := range 3 {
		script := setup[k+1] + "\nexec \"$0\" check --nodes 3 --store node1 " + args
		agents = append(agents, c.start(c.on(k+1, "sh", "-c", script, *rdzvBin)...))
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

// checkLines checks that there is a line with each of the texts.
func checkLines(t *testing.T, lines []string, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, want) }) {
			t.Errorf("no line has %q:\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

// writeFiles writes executable files below a directory; each has its name as contents.
func writeFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
}

// The table of three hosts shows in what one of them differs: here the interpreter, the script, a
// variable and shared memory.
func TestCheckDifferences(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	dir := c.dir("job")
	imports, err := os.ReadFile("/bin/true") // whatever it is told to
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"3.9", "3.11"} {
		prefix := filepath.Join(dir, version)
		writeFiles(t, prefix, "bin/python"+version, "lib/python"+version+"/os.py")
		file := filepath.Join(prefix, "bin/python"+version)
		if err := errors.Join(os.WriteFile(file, imports, 0o777),
			os.Symlink(file, filepath.Join(prefix, "bin/python3"))); err != nil {
			t.Fatal(err)
		}
	}
	writeFiles(t, dir, "good/main.py", "other/main.py")
	good := "cd " + dir + "/good; PATH=" + dir + "/3.11/bin:$PATH\n"
	agents := c.checkOn("-- python3 main.py", map[int]string{
		1: good,
		2: good + "PATH=" + dir + "/3.9/bin:$PATH\nexport NCCL_DEBUG=INFO",
		3: good + "cd ../other; " + sudo() + "mount -o remount,size=1m /dev/shm\n" +
			"head -c 1M /dev/zero > /dev/shm/full",
	})
	checkCodes(0, agents...)
	checkLines(t, report(t, agents),
		"3 nodes: node1-node3, 3 workers",
		"address 10.77.0.11-10.77.0.13",
		"interface eth0 (used to reach the other nodes)",
		"/other on node3",
		"/3.9/bin/python3 on node2",
		"1 MiB, 0 MiB free on node3",
		"! python 3.11 on node1, node3",
		"3.9 on node2",
		"! NCCL_DEBUG not set on node1, node3",
		"INFO on node2",
		"warning: /dev/shm has only 0 MiB free of 1 MiB",
		"should be the same for a job: script main.py, python,",
	)
	for _, agent := range agents {
		if lines := agent.linesWith("rdzv: warning:"); len(lines) > 0 {
			t.Errorf("printed %q besides the table", lines)
		}
	}
}

// Torch that one host lacks is an error of that host, and so is the limit of open files that it has
// for itself a difference.
func TestCheckWithoutTorch(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	hide := c.dir("hide") // a torch that cannot be imported comes first
	if err := os.WriteFile(filepath.Join(hide, "torch.py"),
		[]byte("raise ModuleNotFoundError(\"No module named 'torch'\")"), 0o666); err != nil {
		t.Fatal(err)
	}
	agents := c.checkOn("-- "+python+" -c pass", map[int]string{
		2: "ulimit -Sn 1024", 3: "export PYTHONPATH=" + hide,
	})
	checkCodes(1, agents...)
	checkLines(t, report(t, agents),
		"open files ", "1024 on node2",
		"import torch ", "failed on node3",
		"ModuleNotFoundError: No module named 'torch'",
		"not ok: the job would fail: 1 error",
	)
}

// MASTER_PORT that one host does not reach is an error of that host, although it reaches all others.
func TestCheckMasterPort(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	block := sudo() + "ip rule add pref 1 ipproto tcp dport 29555 unreachable"
	agents := c.checkOn("--master-port 29555 -- true", map[int]string{3: block})
	checkCodes(1, agents...)
	checkLines(t, report(t, agents),
		"3 nodes: node1-node3, 3 workers",
		"! MASTER_PORT 10.77.0.11:29555, from 2 of 3 nodes",
		"error: cannot connect to MASTER_PORT (10.77.0.11:29555): network is unreachable (on node3)",
		"connections 6 of 6 between the nodes",
		"not ok: the job would fail: 1 error",
	)
}

// sudo is the beginning of a shell command that needs root.
func sudo() string {
	if os.Geteuid() == 0 {
		return ""
	}
	return "sudo -n "
}

// staleMount is a Python program that mounts a file system whose server does not respond.
const staleMount = `import ctypes, os, signal, sys
device = os.open('/dev/fuse', os.O_RDWR)
options = f'fd={device},rootmode=40000,user_id=0,group_id=0,allow_other'
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b'stale', sys.argv[1].encode(), b'fuse', 0, options.encode()):
    sys.exit('cannot mount: ' + os.strerror(ctypes.get_errno()))
print('mounted', flush=True)
signal.pause()`

// The host on which a file system does not respond says so, and is missing in a check.
func TestCheckStaleMount(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("no FUSE: %v", err)
	}
	c := newCluster(t, 3)
	dir := c.dir("stale")
	writeFiles(t, dir, "main.py")
	line := append(strings.Fields(sudo()), python, "-c", staleMount, dir)
	server := c.start(c.on(3, line...)...)
	t.Cleanup(func() { c.hosts("crash", "3"); server.code() })
	server.waitFor("mounted")
	agents := c.checkOn("--join-timeout 8s -- sh "+dir+"/main.py", nil)
	want := `rdzv: waiting: the file system of the program "sh ` + dir + `/main.py", or of what it needs, ` +
		"does not respond"
	agents[2].waitFor(want)
	checkCodes(1, agents...)
	checkLines(t, report(t, agents), "2 nodes: node1, node2, 2 workers", "only 2 of 3 agents joined")
}

// If an agent cannot join, the table is that of the others, and all agents exit with 1.
func TestCheckWithoutOneHost(t *testing.T) {
	t.Parallel()
	var scenarios []scenario
	for name, fault := range map[string]string{
		"token": "export RDZV_TOKEN=0123456789abcdefghijklmnopqrstuvwxyzABCDEFG", "link": "",
	} {
		scenarios = append(scenarios, scenario{name, func(t *testing.T) {
			c := newCluster(t, 3)
			if fault == "" {
				c.hosts("cut", "3")
			}
			// With sudo the agents of both checks have the same runtime directory.
			args := "--job " + name + " --join-timeout 5s -- python3 main.py"
			agents := c.checkOn(args, map[int]string{3: fault})
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
		}})
	}
	runConcurrently(t, scenarios)
}

// Under a launcher a check prints one report, also as JSON, and all agents have its exit code.
func TestCheckUnderLaunchers(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.startSlurm(1, 3)
	var scenarios []scenario
	for _, launcher := range []string{"openmpi", "hydra", "slurm"} {
		scenarios = append(scenarios, scenario{launcher, func(t *testing.T) {
			p := c.newPlace(t)
			p.checkTable(launcher)
			p.checkJSON(launcher)
		}})
	}
	runConcurrently(t, scenarios)
}

// launch starts a command on three hosts.
func (p *clusterPlace) launch(launcher string, line ...string) *process {
	switch launcher {
	case "openmpi":
		args := append(strings.Fields("--host node1,node2,node3 -np 3"), line...)
		return p.on(1, p.openMPI(args...)...)
	case "hydra":
		args := append(strings.Fields("-hosts node1,node2,node3 -ppn 1 -np 3"), line...)
		return p.on(1, p.hydra(args...)...)
	}
	return p.slurm(1, append(strings.Fields("srun -O -N 3 -n 3"), line...)...)
}

// checkTable checks a program that is missing on one node.
func (p *clusterPlace) checkTable(launcher string) {
	script := `[ $(hostname) = node3 ] || PATH=$PATH:` + p.dir("bin") + `; exec "$@"`
	writeFiles(p.t, p.dir("bin"), "prog")
	job := p.launch(launcher, "sh", "-c", script, "sh", *rdzvBin, "check", "--", "prog")
	job.checkCode(1)
	checkLines(p.t, report(p.t, []*process{job}), "3 nodes: node1-node3, 3 workers",
		"/bin/prog on node1, node2", `error: cannot run "prog": not found in PATH`, "(on node3)")
}

// checkJSON checks a program that can start.
func (p *clusterPlace) checkJSON(launcher string) {
	job := p.launch(launcher, *rdzvBin, "check", "--json", "--", "true")
	job.checkCode(0)
	lines, _ := job.output() // of stderr too, which srun may print in between
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "rdzv: ") })
	first, last := slices.Index(lines, "{"), slices.Index(lines, "}")
	if first < 0 || last < first {
		p.t.Fatalf("no JSON object in %q", lines)
	}
	var report struct {
		Nodes, Problems []any
		Joined          int
	}
	text := strings.Join(lines[first:last+1], "\n")
	if err := json.Unmarshal([]byte(text), &report); err != nil || len(report.Nodes) != 3 ||
		report.Joined != 3 || len(report.Problems) != 0 {
		p.t.Errorf("%s is %+v (%v), want a report of 3 nodes", text, report, err)
	}
}

// The nodes measure the connections between them: two that a firewall separates have an error,
// although both reach the store, and besides that of a node that lacks the script.
func TestCheckConnections(t *testing.T) { // alone: it measures times
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
			agents := c.checkOn("-- "+python+" main.py", setup)
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
