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

// Without a launcher rdzv ends with the worker's code, whatever it is.
func TestAllExitCodes(t *testing.T) {
	p := newPlace(t)
	const codes = 256
	var jobs [codes]*process
	runSomeAtATime(codes, func(code int) {
		p.t.Helper()
		jobs[code] = p.start(direct(p, 1, []string{"-q"}, []string{"sh", "-c", "exit " + strconv.Itoa(code)})...)
	}, func(code int) {
		if got := jobs[code].code(); got != code {
			t.Errorf("rdzv ended with %d, want %d", got, code)
		}
	})
}

// The same for all signals that end a process, with 128 added.
func TestAllFatalSignals(t *testing.T) {
	p := newPlace(t)
	signals := fatalSignals()
	jobs := make([]*process, len(signals))
	runSomeAtATime(len(signals), func(i int) {
		die := fmt.Sprintf("ulimit -c 0; kill -%d $$", signals[i])
		jobs[i] = p.start(direct(p, 1, nil, []string{"sh", "-c", die})...)
	}, func(i int) {
		if got, want := jobs[i].code(), 128+signals[i]; got != want {
			t.Errorf("rdzv ended with %d, want %d", got, want)
		}
	})
}

// runSomeAtATime begins things one after another, a few of them under way at a time. begin is called by one goroutine.
func runSomeAtATime(n int, begin, end func(i int)) {
	const ahead = 6
	free := make(chan struct{}, ahead)
	var all sync.WaitGroup
	for i := range n {
		free <- struct{}{}
		begin(i)
		all.Go(func() {
			defer func() { <-free }()
			end(i)
		})
	}
	all.Wait()
}

// fatalSignals are the signals whose default action ends a process, real-time signals too.
func fatalSignals() (signals []int) {
	harmless := map[syscall.Signal]bool{
		syscall.SIGCHLD: true, syscall.SIGCONT: true, syscall.SIGURG: true, syscall.SIGWINCH: true,
		syscall.SIGSTOP: true, syscall.SIGTSTP: true, syscall.SIGTTIN: true, syscall.SIGTTOU: true,
	}
	const reserved, last = 32, 64 // the C library keeps 32 and 33 for itself
	for s := 1; s <= last; s++ {
		if !harmless[syscall.Signal(s)] && s != reserved && s != reserved+1 {
			signals = append(signals, s)
		}
	}
	return signals
}

// Every launcher passes the code of the rank that failed on, on one host and on two.
func TestExitCodesUnderLaunchers(t *testing.T) {
	f := newField(t)
	var scenarios []scenario
	for _, launcher := range jobLaunchers[1:] {
		for i, how := range []struct {
			script string
			code   int
		}{
			{"exit 0", 0}, {"exit 1", 1}, {"exit 3", 3}, {"exit 42", 42}, {"exit 127", 127}, {"exit 128", 128}, {"exit 255", 255},
			{"kill -9 $$", 128 + 9}, {"kill -15 $$", 128 + 15}, {"ulimit -c 0; kill -11 $$", 128 + 11}, {"ulimit -c 0; kill -6 $$", 128 + 6}, {"kill -1 $$", 128 + 1},
		} {
			scenarios = append(scenarios, scenario{fmt.Sprintf("%s/%d", launcher, how.code), func(t *testing.T) {
				script := `[ "$RANK" = 2 ] || [ ` + strconv.Itoa(how.code) + ` = 0 ] || exec sleep 1000; ` + how.script
				f.passOn(t, launcher, 1+i%2, script, how.code)
			}})
		}
		scenarios = append(scenarios,
			scenario{launcher + "/0_and_3", func(t *testing.T) {
				f.passOn(t, launcher, 1, `[ "$RANK" = 3 ] || exit 0; sleep 1; exit 3`, 3)
			}},
			scenario{launcher + "/all_7", func(t *testing.T) { f.passOn(t, launcher, 2, "exit 7", 7) }},
			scenario{launcher + "/two_different", func(t *testing.T) {
				f.passOn(t, launcher, 2, `case $RANK in 1) exit 5;; 2) sleep 0.3; exit 6;; *) exec sleep 1000;; esac`, 5)
			}},
			scenario{launcher + "/rank_0_first", func(t *testing.T) { f.rank0LeavesFirst(t, launcher) }})
	}
	runConcurrently(t, scenarios)
}

func (f *field) passOn(t *testing.T, launcher string, hosts int, script string, want int) {
	j := f.startJob(t, launcher, hosts, nil, []string{"sh", "-c", script})
	for _, command := range j.commands {
		if code := command.code(); code != want {
			t.Errorf("the launcher ended with %d, want %d", code, want)
		}
	}
	j.checkAgentCodes(want)
	j.removeLeftovers()
}

// rank0LeavesFirst: its agent hosts the store, and its launcher hears that it has ended well; neither harms the others.
func (f *field) rank0LeavesFirst(t *testing.T, launcher string) {
	end := filepath.Join(newPlace(t).root, "end")
	j := f.startJob(t, launcher, 2, nil, actor("leave", end, ""))
	j.workers = records(t, filepath.Join(j.root, "job"), workersPerJob)
	if !eventually(waitLimit, func() bool { return statOf(j.workers[0].PID)[0] == "X" }) {
		t.Error("rank 0 has not left")
	}
	for rank := 1; rank < workersPerJob; rank++ {
		if state := statOf(j.workers[rank].PID)[0]; state == "X" || state == "Z" {
			t.Errorf("rank %d is in state %s", rank, state)
		}
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range j.commands {
		if code := command.code(); code != 0 {
			t.Errorf("the launcher ended with %d", code)
		}
	}
	j.checkAgentCodes(0)
	j.removeLeftovers()
}
