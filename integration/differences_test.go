package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// differentNodes makes a directory for each node with another script and another torch. The result
// is shell code that runs before each agent; GLOO_SOCKET_IFNAME and NCCL_RANK may be different.
func (p *place) differentNodes() string {
	p.t.Helper()
	for node, version := range map[string]string{"node1": "2.6.0", "node2": "2.5.1"} {
		torch := filepath.Join(p.dir(node), "lib", "torch")
		files := map[string]string{
			filepath.Join(torch, "__init__.py"):        "",
			filepath.Join(torch, "version.py"):         "__version__ = '" + version + "'\n",
			filepath.Join(p.dir(node), "different.py"): "# of " + node + "\n",
			filepath.Join(p.dir(node), "equal.py"):     "# of all\n",
		}
		if err := os.MkdirAll(torch, 0o755); err != nil {
			p.t.Fatal(err)
		}
		for file, text := range files {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	return `cd ` + p.root + `/$(hostname)
		export GLOO_SOCKET_IFNAME=$(hostname) PYTHONPATH=
		export NCCL_RANK=$OMPI_COMM_WORLD_RANK$PMI_RANK$SLURM_PROCID
		[ "$1" != different ] || export PYTHONPATH=$PWD/lib
		[ "$1$(hostname)" != differentnode2 ] || export NCCL_DEBUG=INFO
		shift; exec "$@"`
}

// What is different on the nodes is reported once. With --strict no worker starts.
func TestDifferences(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	setup := c.differentNodes()
	want := []string{
		"script different.py is crc32:940b8cba on node1, but crc32:bf26df79 on node2",
		"torch is 2.6.0 on node1, but 2.5.1 on node2",
		"NCCL_DEBUG is not set on node1, but INFO on node2",
	}
	var all []variant
	for _, launcher := range jobLaunchers {
		add := func(name string, test func(t *testing.T)) {
			all = append(all, variant{name, launcher, scenario{launcher + "/" + name, test}})
		}
		run := func(t *testing.T, code int, name string, flags ...string) *job {
			via := []string{"sh", "-c", setup, "sh", name}
			program := []string{"/usr/bin/python3", name + ".py"}
			j := c.startJob(t, launcher, 2, flags, program, via...)
			j.checkCommands(code)
			return j
		}
		add("equal", func(t *testing.T) {
			if lines := run(t, 0, "equal", "--strict").linesWith("warning:"); len(lines) > 0 {
				t.Errorf("printed %q, want no warning", lines)
			}
		})
		add("different", func(t *testing.T) {
			checkDifferences(t, run(t, 0, "different"), "rdzv: warning: ", want, "")
		})
		add("strict", func(t *testing.T) {
			j := run(t, 121, "different", "--strict")
			j.compareAgentCodes(121)
			checkDifferences(t, j, "rdzv: cannot start: ", want, " (--strict)")
		})
	}
	runConcurrently(t, selected(all))
}

// Stalls are detected only if all nodes watch for them.
func TestStallTimeoutOfOneNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	p := c.newPlace(t)
	start := func(host int, flags ...string) *process {
		flags = append(flags, "--nodes", "2", "--store", "node1")
		return p.on(host, rdzvExec(flags, []string{"true"})...)
	}
	first, second := start(1, "--tag", "--stall-timeout", "90s"), start(2)
	checkCodes(0, first, second)
	first.waitFor("rdzv: warning: stall timeout is 1m30s on node1, but not set on node2")
}

// checkDifferences checks that each line is printed, and no other with this beginning. All agents
// print the first problem.
func checkDifferences(t *testing.T, j *job, begin string, want []string, end string) {
	t.Helper()
	var got []string
	for _, line := range j.linesWith(begin) {
		_, line, _ = strings.Cut(line, begin)
		got = append(got, strings.TrimSuffix(line, end))
	}
	if begin == "rdzv: warning: " && !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("printed %q, want a line with %q", got, line)
		}
	}
}

// Four problems of three nodes are reported together, each with its nodes, and no worker starts.
func TestGroupedProblems(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	other := c.start(c.on(1, python, "-c", listenForever, masterPort)...)
	t.Cleanup(func() { other.signal(syscall.SIGKILL); other.code() })
	other.waitFor("listening")
	c.dir("job")
	script := filepath.Join(c.root, "train.py")
	if err := os.WriteFile(script, []byte("open('started', 'w')"), 0o644); err != nil {
		t.Fatal(err)
	}
	const setup = `case $(hostname) in
		node1) export CUDA_VISIBLE_DEVICES=0 ;;
		node2) export CUDA_VISIBLE_DEVICES=0; cd job ;;
		node3) export CUDA_VISIBLE_DEVICES=; cd job; ulimit -n 79 ;;
		esac; exec "$@"`
	flags := []string{
		"--nodes", "3", "--store", "node1", "--nproc-per-node", "gpu", "--master-port", masterPort,
	}
	exec := append([]string{"sh", "-c", setup, "sh"},
		rdzvExec(flags, []string{"/usr/bin/python3", "train.py"})...)
	var agents []*process
	for host := 1; host <= 3; host++ {
		agents = append(agents, c.start(c.on(host, exec...)...))
	}
	for _, agent := range agents {
		agent.checkCode(127)
	}
	missing := `cannot start: script "train.py" is missing in "` + c.root + `/job"`
	for want, nodes := range map[string]string{
		missing: " (on node2, node3)",
		"cannot start one worker per GPU: no device is visible":                " (on node3)",
		"cannot start 1 worker: open-file limit too low: 79 (":                 " (on node3)",
		"cannot reserve port " + masterPort + ": bind: address already in use": " (on node1)",
	} {
		printed := func(p *process) bool { return len(p.linesWith("rdzv: "+want, nodes)) > 0 }
		if !slices.ContainsFunc(agents, printed) {
			t.Errorf("no agent printed %q with %q", want, nodes)
		}
	}
	if _, err := os.Stat(filepath.Join(c.root, "started")); err == nil {
		t.Error("a worker was started")
	}
}
