package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// freezeTime is how long the agent that hosts the store is stopped in TestFrozenStore, less than the
// peer timeout.
const freezeTime = 7 * time.Second

// frozenWorker waits until another process writes the code with which it exits.
const frozenWorker = `echo "rank $RANK runs"; until code=$(cat $1/$RANK 2>/dev/null); do sleep .1; done; exit $code`

// What an agent writes while the host of the store is stopped is not lost: how its worker ended, or
// that it has received a signal.
func TestFrozenStore(t *testing.T) {
	t.Parallel()
	var scenarios []scenario
	for _, s := range []struct {
		name   string
		end    func(f *frozenStore)
		thawed func(f *frozenStore)
		code   int
	}{
		{"success", func(f *frozenStore) { f.exit(f.other, "0") },
			func(f *frozenStore) { f.exit(f.host, "0") }, 0},
		{"all succeed", func(f *frozenStore) { f.exit(f.host, "0"); f.exit(f.other, "0") },
			func(*frozenStore) {}, 0},
		{"failure", func(f *frozenStore) { f.exitOne(2*f.other, "7") }, func(*frozenStore) {}, 7},
		{"signal", func(f *frozenStore) { f.agents[f.other].signal(syscall.SIGTERM) },
			func(*frozenStore) {}, 143},
	} {
		scenarios = append(scenarios, scenario{s.name, func(t *testing.T) {
			f := startFrozenStore(t)
			f.freeze()
			stopped := time.Now()
			s.end(f)
			f.agents[f.other].runsUntil(stopped.Add(freezeTime))
			f.agents[f.host].signal(syscall.SIGCONT)
			s.thawed(f)
			checkCodes(s.code, f.agents...)
		}})
	}
	runConcurrently(t, scenarios)
}

// A frozenStore is a job of two agents with two workers each.
type frozenStore struct {
	*place
	agents      []*process
	host, other int // which of them hosts the store, and which does not
}

func startFrozenStore(t *testing.T, more ...string) *frozenStore {
	p := newPlace(t)
	flags := append([]string{"-v", "--nodes", "2", "--nproc-per-node", "2", "--store", freeAddress(t),
		"--job", filepath.Base(p.root)}, more...)
	program := []string{"sh", "-c", frozenWorker, "sh", p.dir("codes")}
	f := &frozenStore{place: p, agents: p.startOnOneHost(flags, program)}
	for i, agent := range f.agents {
		for rank := 2 * i; rank < 2*i+2; rank++ {
			agent.waitFor(f.line(rank))
		}
	}
	f.host = slices.IndexFunc(f.agents, func(a *process) bool {
		return len(a.linesWith("hosting the store")) > 0
	})
	f.other = 1 - f.host
	return f
}

// freeze stops the host of the store. A thread that waits for a processor stops when it gets one.
func (f *frozenStore) freeze() {
	f.t.Helper()
	host := f.agents[f.host]
	host.signal(syscall.SIGSTOP)
	stopped := func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", host.cmd.Process.Pid))
		return len(threads) > 0 && !slices.ContainsFunc(threads, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && !strings.Contains(string(text), ") T ")
		})
	}
	if !eventually(waitLimit, stopped) {
		f.t.Fatal("the host of the store is not stopped")
	}
}

func (f *frozenStore) line(rank int) string { return "rank " + strconv.Itoa(rank) + " runs" }

// exit ends both workers of an agent.
func (f *frozenStore) exit(agent int, code string) {
	f.exitOne(2*agent, code)
	f.exitOne(2*agent+1, code)
}

func (f *frozenStore) exitOne(rank int, code string) {
	f.t.Helper()
	file := filepath.Join(f.dir("codes"), strconv.Itoa(rank))
	if err := os.WriteFile(file+".new", []byte(code), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		f.t.Fatal(err)
	}
}

// While the agent that hosts the store is stopped, rdzv status and stacks print what another agent
// knows, and why it is alone.
func TestQuestionsWhileTheStoreIsFrozen(t *testing.T) {
	t.Parallel()
	f := startFrozenStore(t, "--peer-timeout", "1m")
	f.freeze()
	const why = `only (this node|this agent) has answered: cannot ask the agents of job ` +
		`"[^"]+": the store has not answered for 3s`
	for command, ofOther := range map[string]string{
		"status": fmt.Sprintf(`\n%d +\S+ +\d+ +running`, 2*f.other),
		"stacks": fmt.Sprintf(`\nranks? %d\b`, 2*f.other),
	} {
		asked := f.start(*rdzvBin, command, "--job", filepath.Base(f.root))
		asked.checkCode(0)
		lines, _ := asked.output()
		text := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
		all := strings.Join(lines, "\n")
		if !regexp.MustCompile(why).MatchString(text) || !regexp.MustCompile(ofOther).MatchString(all) {
			t.Errorf("rdzv %s prints\n%s\nwant %q and %q in it", command, all, ofOther, why)
		}
	}
	f.agents[f.host].signal(syscall.SIGCONT)
	f.exit(f.host, "0")
	f.exit(f.other, "0")
	checkCodes(0, f.agents...)
}
