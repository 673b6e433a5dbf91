package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// Without a launcher, rdzv exits with the worker's code, for all codes. Without -all, these are the
// first and last ones, some between, and all that rdzv or a shell uses itself.
func TestAllExitCodes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var codes []int
	for code := range 256 {
		if *wholeMatrix || code < 4 || code%16 == 15 || code > 115 && code < 144 {
			codes = append(codes, code)
		}
	}
	jobs := make([]*process, len(codes))
	runSomeAtATime(len(codes), func(i int) {
		script := "exit " + strconv.Itoa(codes[i])
		jobs[i] = p.start(direct(p, 1, []string{"-q"}, []string{"sh", "-c", script})...)
	}, func(i int) {
		jobs[i].checkCode(codes[i])
	})
}

// The same for all signals that end a process, with 128 added.
func TestAllFatalSignals(t *testing.T) {
	p := newPlace(t)
	signals := fatalSignals()
	jobs := make([]*process, len(signals))
	runSomeAtATime(len(signals), func(i int) {
		script := fmt.Sprintf("ulimit -c 0; kill -%d $$", signals[i])
		jobs[i] = p.start(direct(p, 1, nil, []string{"sh", "-c", script})...)
	}, func(i int) {
		jobs[i].checkCode(128 + signals[i])
	})
}

// runSomeAtATime starts and waits for n jobs, a few at a time. Only this goroutine calls start.
func runSomeAtATime(n int, start, wait func(i int)) {
	const most = 6
	slots := make(chan struct{}, most)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		start(i)
		all.Go(func() {
			defer func() { <-slots }()
			wait(i)
		})
	}
	all.Wait()
}

// fatalSignals are the signals whose default action ends a process, including real-time signals.
func fatalSignals() (signals []int) {
	harmless := map[syscall.Signal]bool{
		syscall.SIGCHLD: true, syscall.SIGCONT: true, syscall.SIGURG: true, syscall.SIGWINCH: true,
		syscall.SIGSTOP: true, syscall.SIGTSTP: true, syscall.SIGTTIN: true, syscall.SIGTTOU: true,
	}
	const reserved, last = 32, 64 // the C library reserves 32 and 33
	for s := 1; s <= last; s++ {
		if !harmless[syscall.Signal(s)] && s != reserved && s != reserved+1 {
			signals = append(signals, s)
		}
	}
	return signals
}

// failures are ways in which rank 2 of a job ends, and the job's exit code.
var failures = []struct {
	script string
	code   int
}{
	{"exit 1", 1}, {"exit 3", 3}, {"exit 42", 42}, {"exit 127", 127}, {"exit 128", 128},
	{"exit 255", 255}, {"kill -9 $$", 128 + 9}, {"kill -15 $$", 128 + 15}, {"kill -1 $$", 128 + 1},
	{"ulimit -c 0; kill -11 $$", 128 + 11}, {"ulimit -c 0; kill -6 $$", 128 + 6},
}

// Every launcher exits with the code of the rank that failed, on one host and on two.
func TestExitCodesUnderLaunchers(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	var all []variant
	for _, launcher := range jobLaunchers[1:] {
		run := func(name string, test func(t *testing.T)) {
			all = append(all, variant{name, launcher, scenario{launcher + "/" + name, test}})
		}
		add := func(name string, hosts int, script string, code int) {
			run(name, func(t *testing.T) { c.checkExitCode(t, launcher, hosts, script, code) })
		}
		for i, f := range failures {
			script := `[ "$RANK" = 2 ] || exec sleep 1000; ` + f.script
			add(strconv.Itoa(f.code), 1+i%2, script, f.code)
		}
		add("0", 1, "exit 0", 0)
		add("0_and_3", 1, `[ "$RANK" = 3 ] || exit 0; sleep 1; exit 3`, 3)
		add("all_7", 2, "exit 7", 7)
		add("two_different", 2, `case $RANK in
			1) exit 5 ;;
			2) trap 'exit 6' TERM; sleep 1000 & wait ;;
			*) exec sleep 1000 ;;
		esac`, 5)
		run("rank_0_first", func(t *testing.T) { c.rank0EndsFirst(t, launcher) })
	}
	runConcurrently(t, selected(all))
}

func (c *cluster) checkExitCode(t *testing.T, launcher string, hosts int, script string, want int) {
	j := c.startJob(t, launcher, hosts, nil, []string{"sh", "-c", script})
	j.checkCommands(want)
	j.checkAgentCodes(want)
	j.removeLeftovers()
}

// rank0EndsFirst checks that the other ranks continue when rank 0 has succeeded, although its agent
// hosts the store.
func (c *cluster) rank0EndsFirst(t *testing.T, launcher string) {
	end := filepath.Join(newPlace(t).root, "end")
	j := c.runningJob(t, launcher, 2, nil, worker("leave", jobDir, end))
	if !eventually(waitLimit, func() bool { return stateOf(j.workers[0].PID) == "X" }) {
		t.Error("rank 0 has not ended")
	}
	for rank := 1; rank < workersPerJob; rank++ {
		if state := stateOf(j.workers[rank].PID); state == "X" || state == "Z" {
			t.Errorf("rank %d has ended (state %s), want it to continue", rank, state)
		}
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j.checkCommands(0)
	j.checkAgentCodes(0)
	j.removeLeftovers()
}
