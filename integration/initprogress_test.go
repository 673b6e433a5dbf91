package integration

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reach is the role of a worker that does with MASTER_PORT what torch's init_process_group does. If
// REACH_ADDR is set, it connects to that instead of MASTER_ADDR.
func reach(dir string, args []string) (int, error) {
	rank := os.Getenv("RANK")
	if rank == "0" {
		l, err := net.Listen("tcp", ":"+os.Getenv("MASTER_PORT"))
		if err != nil {
			return 0, err
		}
		defer l.Close()
	}
	if err := leaveRecord(dir); err != nil {
		return 0, err
	}
	size, err := strconv.Atoi(os.Getenv("WORLD_SIZE"))
	if err != nil {
		return 0, err
	}
	if rank == strconv.Itoa(size-1) {
		untilExists(args[0], 0)
		if args[0] == args[1] {
			return 0, nil // the others end at the same time
		}
	}
	if addr := os.Getenv("REACH_ADDR"); addr != "" {
		os.Setenv("MASTER_ADDR", addr)
	}
	conn, err := dialMaster()
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return untilExists(args[1], 0), nil
}

// inTurn runs a program as different launch scripts do: as rank 1 in a child of a shell, as rank 2
// in a PID namespace.
const inTurn = `case $RANK in
1) "$@"; exit $? ;;
2) exec unshare $UNSHARE --pid --fork "$@" ;;
esac
exec "$@"`

// throughScripts is a program behind inTurn.
func throughScripts(program []string) []string {
	unshare := "UNSHARE="
	if os.Geteuid() != 0 {
		unshare += "--map-root-user"
	}
	return slices.Concat([]string{"env", unshare, "sh", "-c", inTurn, "sh"}, program)
}

// One of four ranks does not call init_process_group: it is named once, 10 s after rank 0 has
// called it, and one line says when it has called it too. Nothing is printed with -q, nor if no
// rank calls it: such jobs have begun before.
func TestMissingRankIsNamed(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	silent, end := c.startSilent(t)
	forEachJobLauncher(t, func(t *testing.T, launcher string, hosts int) {
		files := newPlace(t).root
		late, end := filepath.Join(files, "late"), filepath.Join(files, "end")
		program := throughScripts(worker("reach", jobDir, late, end))
		j := c.startJob(t, launcher, hosts, nil, program)
		node := "(node" + strconv.Itoa(hosts) + ")"
		j.awaitLine("rank 3 " + node + " has not reached init_process_group; 3 of 4 ranks have " +
			"been waiting for 1")
		createFile(t, late)
		j.awaitLine("all 4 ranks have reached init_process_group by now, ")
		createFile(t, end)
		j.checkCommands(0)
		if lines := j.linesWith("init_process_group"); len(lines) != 2 {
			t.Errorf("the agents printed %q, want 2 lines", lines)
		}
		j.removeLeftovers()
	})
	for _, j := range silent {
		if lines := j.linesWith("init_process_group"); len(lines) > 0 {
			t.Errorf("agents printed %q, want nothing", lines)
		}
	}
	createFile(t, end)
	for _, j := range silent {
		j.checkCommands(0)
		j.removeLeftovers()
	}
}

// startSilent starts jobs that print nothing about missing ranks. They end when the file end
// exists.
func (c *cluster) startSilent(t *testing.T) (jobs []*job, end string) {
	files := newPlace(t).root
	end = filepath.Join(files, "end")
	return []*job{
		c.runningJob(t, "openmpi", 1, []string{"-q"}, worker("reach", jobDir, end, end)),
		c.runningJob(t, "openmpi", 1, nil, worker("until", jobDir, end)),
	}, end
}

func createFile(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// awaitLine waits until one of the job's commands has printed a line with the texts.
func (j *job) awaitLine(texts ...string) {
	j.t.Helper()
	if !eventually(waitLimit, func() bool { return len(j.linesWith(texts...)) > 0 }) {
		j.t.Fatalf("no agent has printed %q", texts)
	}
}

// lateProgram is a Python program whose rank 3 calls init_process_group only when a file exists.
const lateProgram = `import os, sys, time, torch.distributed as dist
while os.environ["RANK"] == "3" and not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
dist.init_process_group("gloo")
dist.barrier()`

// The sockets of torch itself tell which ranks have called init_process_group. The hint names the
// Python process of the one that has not, behind a shell.
func TestMissingRankOfTorch(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	late := filepath.Join(newPlace(t).root, "late")
	program := []string{"sh", "-c", `"$@"; exit $?`, "sh", python, "-c", lateProgram, late}
	j := c.startJob(t, "direct", 2, nil, program)
	j.awaitLine("rank 3 (node2) has not reached init_process_group; 3 of 4 ranks have been " +
		"waiting for 1")
	j.awaitLine("hint: rdzv stacks, on any node of the job, shows where rank 3 is (pid ", " on node2)")
	createFile(t, late)
	j.checkCommands(0)
}

// A worker may connect to rank 0 from another network namespace, by another name of its node, and
// by IPv6.
func TestMissingRankInNetworks(t *testing.T) {
	t.Parallel()
	var scenarios []scenario
	for name, options := range map[string][]string{"IPv4": nil, "IPv6": {"--six"}} {
		scenarios = append(scenarios, scenario{name, func(t *testing.T) {
			p := newCluster(t, 2, options...).newPlace(t)
			end := filepath.Join(p.root, "end")
			reach := worker("reach", p.dir("job"), end, end)
			onNode2 := p.cluster.on(2, slices.Concat([]string{"env", "REACH_ADDR=node1"}, reach)...)
			script := `[ $RANK != 1 ] || exec ` + quoted(onNode2) + `; exec ` + quoted(reach)
			flags := []string{"--nproc-per-node", "3"}
			job := p.on(1, rdzvExec(flags, []string{"sh", "-c", script})...)
			job.waitFor("rank 2 (node1) has not reached init_process_group; ")
			createFile(t, end)
			job.checkCode(0)
			if lines := job.linesWith("; 2 of 3 ranks have"); len(lines) != 1 {
				t.Errorf("the agent printed %q, want one line", lines)
			}
		}})
	}
	runConcurrently(t, scenarios)
}

// lateRank0Program is a torch program whose rank 0 calls init_process_group only when a file exists.
var lateRank0Program = strings.Replace(lateProgram, `== "3"`, `== "0"`, 1)

// While rank 0 sleeps before init_process_group, rdzv says once, after half a minute, that it does
// not listen.
func TestRank0IsMissing(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	forEachJobLauncher(t, func(t *testing.T, launcher string, hosts int) {
		late := filepath.Join(newPlace(t).root, "late")
		j := c.startJob(t, launcher, hosts, nil, []string{python, "-c", lateRank0Program, late})
		j.awaitLine("rank 0 (node1) does not listen on MASTER_PORT (", ") yet, 3", "s after its start")
		j.awaitLine("hint: rdzv stacks, on any node of the job, shows where rank 0 is (pid ", " on node1)")
		createFile(t, late)
		j.checkCommands(0)
		if lines := j.linesWith("does not listen on MASTER_PORT"); len(lines) != 1 {
			t.Errorf("the agents printed %q, want one line", lines)
		}
		j.removeLeftovers()
	})
}

// serverProgram uses MASTER_PORT for a server of its own.
const serverProgram = `import os, socket, time
if os.environ["RANK"] == "0":
    server = socket.create_server(("", int(os.environ["MASTER_PORT"])))
time.sleep(14)`

// A program that is not torch may use MASTER_PORT for something else.
func TestServerOnMasterPort(t *testing.T) {
	t.Parallel()
	j := newJobCluster(t).startJob(t, "direct", 2, nil, []string{python, "-c", serverProgram})
	j.checkCommands(0)
	lines := append(j.linesWith("init_process_group"), j.linesWith("MASTER_PORT")...)
	if len(lines) > 0 {
		t.Errorf("the agents printed %q, want nothing", lines)
	}
}

// Without a launcher the agent that hosts the store on another node than rank 0's reports it too.
func TestMissingRankIsNamedByBoth(t *testing.T) {
	t.Parallel()
	p := newCluster(t, 2).newPlace(t)
	end := filepath.Join(p.root, "end")
	program := worker("reach", p.dir("job"), end, end)
	var agents []*process
	for host := 1; host <= 2; host++ {
		flags := strings.Fields("--nodes 2 --nproc-per-node 2 --store node2 --node-rank")
		agents = append(agents, p.on(host, rdzvExec(append(flags, strconv.Itoa(host-1)), program)...))
	}
	for _, agent := range agents {
		agent.waitFor("rank 3 (node2) has not reached init_process_group; 3 of 4 ranks have been waiting")
	}
	createFile(t, end)
	checkCodes(0, agents...)
	for i, agent := range agents {
		if lines := agent.linesWith("init_process_group"); len(lines) != 1 {
			t.Errorf("the agent on node%d printed %q, want one line", i+1, lines)
		}
	}
}
