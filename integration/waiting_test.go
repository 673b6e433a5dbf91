package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// While agents wait for others, they report repeatedly which are missing, as far as the launcher
// makes that known.
func TestWaiting(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3) // nothing runs on node3
	c.startSlurm(1, 2)
	runConcurrently(t, []scenario{ // the longest first
		{"openmpi", func(t *testing.T) { c.newPlace(t).rankMissingUnderOpenMPI() }},
		{"name appears", func(t *testing.T) { c.newPlace(t).nameAppears() }},
		{"node/slurm", func(t *testing.T) {
			p := c.newPlace(t)
			p.nodeMissing(" on node2", c.slurm("on", "1", "srun", "-N", "2", "-n", "2"))
		}},
		{"node/openmpi", func(t *testing.T) {
			p, named := c.newPlace(t), " on node2"
			if openMPI5 { // it does not pass the nodes to ranks or daemons
				named = ""
			}
			p.nodeMissing(named, c.on(1, p.openMPI("--host", "node1,node2", "-np", "2")...))
		}},
		{"hydra", func(t *testing.T) { c.newPlace(t).rankMissingUnderHydra() }},
		{"store starts late", func(t *testing.T) { c.newPlace(t).storeStartsLate() }},
		{"timeout", func(t *testing.T) { c.newPlace(t).joinTimeout() }},
		{"no name", func(t *testing.T) { c.newPlace(t).nameMissing() }},
		{"no resolver", func(t *testing.T) { c.newPlace(t).resolverSilent() }},
		{"no store", func(t *testing.T) { c.newPlace(t).storeMissing() }},
		{"terminal", func(t *testing.T) { c.newPlace(t).waitOnTerminal() }},
	})
}

// withoutRank2 is a command line whose rank 2 does not run rdzv, until the file end exists.
func (p *clusterPlace) withoutRank2(flags ...string) []string {
	script := `[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 2 ] && exec "$1" worker until "$2" "$2/end"
		shift 2; exec "$@"`
	line := []string{"sh", "-c", script, "sh", self, p.dir("absent")}
	return append(line, rdzvExec(flags, []string{"true"})...)
}

// nodeMissing checks that agents name the node, if the launcher tells, on which it has not started
// rdzv.
func (p *clusterPlace) nodeMissing(named string, launcher []string) {
	script := `[ "$(hostname)" = node2 ] && exec "$1" worker until "$2" "$2/end"
		shift 2; exec "$@"`
	line := append(launcher, "sh", "-c", script, "sh", self, p.dir("absent"))
	job := p.start(append(line, rdzvExec([]string{"--join-timeout", "6s"}, []string{"true"})...)...)
	missing := "1 of 2 tasks joined; rank 1 has not started rdzv" + named + " or cannot connect " +
		"(see the launcher's messages above)"
	job.waitFor("rdzv: " + missing + " (")
	job.waitFor("rdzv: timed out after 6s (--join-timeout): " + missing)
	end := filepath.Join(p.dir("absent"), "end")
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
	job.code()
}

func (p *clusterPlace) rankMissingUnderOpenMPI() {
	args := strings.Fields("--host node1:2,node2:2 -np 4")
	line := append(args, p.withoutRank2("--join-timeout", "16s")...)
	job := p.on(1, p.openMPI(line...)...)
	job.checkCode(124)
	const missing = "3 of 4 tasks joined; rank 2 has not started rdzv or cannot connect " +
		"(see the launcher's messages above)"
	if n := len(job.linesWith("rdzv: " + missing)); n < 2 {
		p.t.Errorf("rdzv printed %q %d times in 16 s, want at least twice", missing, n)
	}
	const timedOut = "rdzv: timed out after 16s (--join-timeout): " + missing
	if len(job.linesWith(timedOut)) == 0 {
		p.t.Errorf("rdzv did not print %q", timedOut)
	}
}

func (p *clusterPlace) rankMissingUnderHydra() {
	args := strings.Fields("-hosts node1,node2 -ppn 2 -np 4")
	line := append(args, p.withoutRank2("--join-timeout", "7s")...)
	job := p.on(1, p.hydra(line...)...)
	job.waitFor("Hydra does not report which are missing")
	job.waitFor("timed out after 7s (--join-timeout): not all of the 4 tasks joined")
	end := filepath.Join(p.dir("absent"), "end")
	if err := os.WriteFile(end, nil, 0o600); err != nil { // Hydra waits for rank 2
		p.t.Fatal(err)
	}
	job.code()
}

var triedAddress = regexp.MustCompile(
	`^rdzv: (timed out after 2s \(--join-timeout\): )?` +
		`no store at node3 10\.77\.0\.13 \(\d+ ports tried\): connection refused`)

// storeMissing checks that an agent that finds no store prints the addresses that it tried, after
// a second and at the end. On the other hosts the store of another scenario's job may listen on one
// of the 16 ports.
func (p *clusterPlace) storeMissing() {
	flags := []string{"--nodes", "2", "--store", "node3", "--join-timeout", "2s"}
	agent := p.on(2, rdzvExec(flags, []string{"true"})...)
	agent.checkCode(124)
	lines := agent.linesWith("rdzv:")
	if len(lines) != 3 || !strings.Contains(lines[1], `hint: host "node3" answers, but `) ||
		!triedAddress.MatchString(lines[0]) || !strings.HasSuffix(lines[0], " (1s)") ||
		!triedAddress.MatchString(lines[2]) || !strings.Contains(lines[2], "timed out") {
		p.t.Errorf("rdzv printed %q, want a hint and two lines that match %s", lines, triedAddress)
	}
}

// nameMissing checks that an agent says soon that the host of the store has no address.
func (p *clusterPlace) nameMissing() {
	line := p.exec("--nodes", "2", "--store", "nod1")
	agent := p.on(2, line...)
	agent.waitFor(`rdzv: "nod1" does not resolve (`)
	if took := time.Since(agent.started); took > 10*time.Second {
		p.t.Errorf("rdzv said after %v that the name does not resolve, want about 1s", took)
	}
	agent.interrupt()
	agent.checkCode(130)
}

// resolverSilent checks that an agent says soon that its DNS server does not answer.
func (p *clusterPlace) resolverSilent() {
	const silent = `
import os, signal, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 53))
os.setuid(int(os.environ.get("SUDO_UID", "0")))  # this test may kill it
print("bound", flush=True)
signal.pause()`
	server := p.start(asRootOnHost(p.cluster.on(3, python, "-c", silent))...)
	server.waitFor("bound")
	agent := p.on(3, p.exec("--nodes", "2", "--store", "nod1")...)
	agent.waitFor(`rdzv: the resolver has not answered for "nod1" (`)
	agent.waitFor("rdzv: hint: check the DNS servers in /etc/resolv.conf")
	if took := time.Since(agent.started); took > 10*time.Second {
		p.t.Errorf("rdzv said that after %v, want about 1s", took)
	}
	agent.interrupt()
	agent.checkCode(130)
	kill(server.pid())
	server.code()
}

// nameAppears checks that an agent finds the store by a name that resolves only after a while.
func (p *clusterPlace) nameAppears() {
	p.cluster.rootOn(1, "echo 10.77.0.11 late >> /etc/hosts")
	line := p.exec("--nodes", "2", "--store", "late")
	first, second := p.on(1, line...), p.on(2, line...)
	second.waitFor(`rdzv: "late" does not resolve (`)
	p.cluster.rootOn(2, "echo 10.77.0.11 late >> /etc/hosts")
	checkCodes(0, first, second)
}

// storeStartsLate checks that an agent tries the host of the store again until an agent is there.
func (p *clusterPlace) storeStartsLate() {
	line := p.exec("--nodes", "2", "--store", "node1")
	second := p.on(2, line...)
	second.waitFor(" (5s)") // another scenario's store may listen on one of the ports
	checkCodes(0, p.on(1, line...), second)
}

// waitOnTerminal checks that an agent on a terminal updates one line, and erases it when the job
// starts.
func (p *clusterPlace) waitOnTerminal() {
	const waiting = "\r\x1b[Krdzv: 1 of 2 agents joined (from node1) "
	line := p.exec("--nodes", "2", "--store", "node1")
	typescript := filepath.Join(p.root, "typescript")
	script := p.cluster.on(1, "script", "-qfec", quoted(line), typescript)
	first := p.startWith([]string{"TERM=xterm"}, script...)
	screen := func() string { text, _ := os.ReadFile(typescript); return string(text) }
	if !eventually(waitLimit, func() bool { return strings.Contains(screen(), waiting+"(2s)") }) {
		p.t.Errorf("the agent wrote %q, want %q in it", screen(), waiting+"(2s)")
	}
	second := p.on(2, line...)
	checkCodes(0, first, second)
	const updated = waiting + "(1s)" + waiting + "(2s)"
	if !strings.Contains(screen(), updated) {
		p.t.Errorf("the agent wrote %q, want %q in it", screen(), updated)
	}
	if !strings.Contains(screen(), "s)\r\x1b[Krdzv: 2 ranks on 2 nodes: ") {
		p.t.Errorf("the agent wrote %q, want a line that is erased when the job starts", screen())
	}
}

// joinTimeout checks that the timeout counts from the start of the first agent, whichever hosts the
// store.
func (p *clusterPlace) joinTimeout() {
	line := rdzvExec([]string{"--nodes", "3", "--join-timeout", "8s"}, []string{"true"})
	first := p.on(1, line...)
	first.waitFor("no other agent has connected after 3s")
	second := p.on(2, line...)
	checkCodes(124, first, second)
	if took := time.Since(first.started); took > 10*time.Second {
		p.t.Errorf("the agents ended %v after the start of the first, want 8s", took)
	}
}
