package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wrongClocks runs a command whose clock is an hour fast on node1 and an hour slow on node2, from
// AFTER seconds after the start of each of its processes.
const wrongClocks = `case $(hostname) in
node1) export CLOCK_JUMP=3600@AFTER ;;
node2) export CLOCK_JUMP=-3600@AFTER ;;
esac
exec "$@"`

func withWrongClocks(after string, line []string) []string {
	script := strings.ReplaceAll(wrongClocks, "AFTER", after)
	return append([]string{"sh", "-c", script, "sh"}, line...)
}

// The clocks of the hosts differ by two hours, or jump by one hour each while an agent waits, while
// a job runs, and while its workers end: no agent notices. make attack runs this test, make
// integration does not: the program with these clocks takes a minute to build.
func TestAttackClocks(t *testing.T) {
	c := newCluster(t, 3)
	defer func(before string) { *rdzvBin = before }(*rdzvBin)
	*rdzvBin = buildWithJumps(t, t.TempDir())
	for name, test := range map[string]func(p *clusterPlace){
		"clocks that differ by 2 h":                        clocksDiffer,
		"clocks that jump by 1 h while a job runs":         clocksJumpWhileRunning,
		"clocks that jump by 1 h while an agent waits":     clocksJumpWhileWaiting,
		"clocks that jump by 1 h while a worker is killed": clocksJumpInGrace,
	} {
		t.Run(name, func(t *testing.T) { test(c.newPlace(t)) })
	}
}

// clocksDiffer starts jobs in three ways, each with right clocks and with wrong ones.
func clocksDiffer(p *clusterPlace) {
	var delay time.Duration
	for _, kind := range []string{"--job=multicast", "--store=node2", "mpirun"} {
		took := map[string]time.Duration{}
		for _, after := range []string{"1000000", "0"} { // right clocks, wrong clocks
			dir := p.dir(strings.Trim(kind, "-") + after)
			flags := []string{"--nodes", "3", kind, "--join-timeout", "20s"}
			line := func() []string { return withWrongClocks(after, rdzvExec(flags, peer(dir))) }
			var commands []*process
			if kind == "mpirun" {
				flags = joinSoon
				args := append([]string{"--host", "node1,node2,node3", "-np", "3"}, line()...)
				commands = append(commands, p.on(1, p.openMPI(args...)...))
			} else {
				commands = append(commands, p.on(1, line()...), p.on(2, line()...),
					p.on(3, line()...))
			}
			checkCodes(0, commands...)
			took[after] = time.Since(commands[0].started)
			checkRanks(p.t, records(p.t, dir, 3))
		}
		p.t.Logf("%s: %v with right clocks, %v with wrong ones", kind, took["1000000"], took["0"])
		delay = max(delay, took["0"]-took["1000000"])
	}
	attackRow(p.t, "clocks that differ by 2 h", 3, delay, "3 of 3 jobs succeeded")
}

// checkRanks checks that the workers have the ranks of their records, of as many.
func checkRanks(t *testing.T, all []record) {
	t.Helper()
	size := strconv.Itoa(len(all))
	for rank, r := range all {
		r.checkEnv(t, map[string]string{"RANK": strconv.Itoa(rank), "WORLD_SIZE": size})
	}
}

// clocksJumpWhileRunning lets a job run for longer than the peer timeout after the jump.
func clocksJumpWhileRunning(p *clusterPlace) {
	end := filepath.Join(p.root, "end")
	flags := []string{"--nodes", "3", "--peer-timeout", "3s"}
	line := withWrongClocks("4", rdzvExec(flags, worker("until", p.dir("job"), end)))
	agents := []*process{p.on(1, line...), p.on(2, line...), p.on(3, line...)}
	records(p.t, p.dir("job"), 3)
	for _, a := range agents {
		a.runsUntil(agents[0].started.Add(9 * time.Second))
	}
	createFile(p.t, end)
	checkCodes(0, agents...)
	attackRow(p.t, "clocks that jump by 1 h while a job runs, --peer-timeout 3s", 3, 0,
		"the job continued and succeeded")
}

// clocksJumpWhileWaiting lets agents wait in vain, whose clocks jump in both directions.
func clocksJumpWhileWaiting(p *clusterPlace) {
	const limit = 5 * time.Second
	flags := []string{"--nodes", "2", "--join-timeout", limit.String(), "--job"}
	var delay time.Duration
	for i, job := range []string{"fast", "slow"} {
		line := rdzvExec(append(slices.Clone(flags), job), []string{"true"})
		agent := p.on(i+1, withWrongClocks("2", line)...)
		agent.checkCode(124)
		took := time.Since(agent.started)
		p.t.Logf("%s: ended after %v", job, took)
		if took < limit {
			p.t.Errorf("the agent ended after %v, want %v", took, limit)
		}
		delay = max(delay, took-limit)
	}
	if delay > 3*time.Second {
		p.t.Errorf("--join-timeout was exceeded by %v", delay)
	}
	attackRow(p.t, "clocks that jump by 1 h while an agent waits", 1, delay,
		"--join-timeout ended the agents")
}

// clocksJumpInGrace stops workers that ignore SIGTERM. The clock jumps before their SIGKILL.
func clocksJumpInGrace(p *clusterPlace) {
	const grace = 6 * time.Second
	program := []string{"sh", "-c", `trap "" TERM; echo ready; while :; do sleep 1; done`}
	var delay time.Duration
	for host := 1; host <= 2; host++ {
		line := rdzvExec([]string{"--grace", grace.String()}, program)
		agent := p.on(host, withWrongClocks("4", line)...)
		agent.waitFor("ready")
		agent.signal(syscall.SIGTERM)
		signalled := time.Now()
		agent.checkCode(128 + int(syscall.SIGTERM))
		took := time.Since(signalled)
		p.t.Logf("node%d: ended %v after SIGTERM", host, took)
		if took < grace-100*time.Millisecond {
			p.t.Errorf("the workers were killed after %v, want %v", took, grace)
		}
		delay = max(delay, took-grace)
	}
	if delay > 3*time.Second {
		p.t.Errorf("--grace was exceeded by %v", delay)
	}
	attackRow(p.t, "clocks that jump by 1 h while a worker is killed", 1, delay,
		"--grace ended the workers")
}

// jumpSource is a file of Go's package time with which the clock of a program is wrong by the
// seconds in CLOCK_JUMP, from so many seconds after its start: CLOCK_JUMP=-3600@2. Setting the
// clock of this machine would disturb its other programs, time namespaces share this clock, and
// libfaketime does not affect static programs.
const jumpSource = `package time

import "syscall"

var jumpBy, jumpAfter = clockJump()

func clockJump() (by, after int64) {
	text, _ := syscall.Getenv("CLOCK_JUMP")
	for i := range text {
		if text[i] == '@' {
			seconds, err1 := atoi(text[:i])
			start, err2 := atoi(text[i+1:])
			if err1 != nil || err2 != nil {
				panic("invalid CLOCK_JUMP")
			}
			return int64(seconds), int64(start) * 1e9
		}
	}
	return 0, 0
}

func jumped(mono int64) int64 {
	if mono-startNano < jumpAfter {
		return 0
	}
	return jumpBy
}
`

// buildWithJumps builds rdzv with a clock that obeys CLOCK_JUMP. That compiles all packages, because
// all depend on package time.
func buildWithJumps(t *testing.T, dir string) (program string) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := strings.TrimSpace(string(out))
	original := filepath.Join(root, "src/time/time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const now = "sec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), now) != 1 {
		t.Fatalf("%s has changed: want %q once", original, now)
	}
	changed := strings.Replace(string(source), now, now+"sec += jumped(mono)\n", 1)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		original: file("time.go", changed),
		filepath.Join(root, "src/time/jumped.go"): file("jumped.go", jumpSource),
	}})
	if err != nil {
		t.Fatal(err)
	}
	build := func(source string) (program string) {
		program = filepath.Join(dir, strings.TrimSuffix(filepath.Base(source), ".go"))
		cmd := exec.Command("go", "build", "-overlay", file("overlay", string(overlay)),
			"-o", program, source)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", cmd.Args, err, out)
		}
		return program
	}
	checkJump(t, build(file("clock.go", clockProgram)))
	return build("../cmd/rdzv")
}

const clockProgram = `package main

import "time"

func main() { println(time.Now().Unix()) }
`

// checkJump checks that the clock of a program built like this one is wrong.
func checkJump(t *testing.T, clock string) {
	t.Helper()
	cmd := exec.Command(clock)
	cmd.Env = []string{"CLOCK_JUMP=-3600@0"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if off := time.Since(time.Unix(seconds, 0)); off < time.Hour || off > time.Hour+waitLimit {
		t.Errorf("the clock is slow by %v, want 1h", off)
	}
}
