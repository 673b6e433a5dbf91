package turn

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"testing/fstest"
	"time"
)

// sleeper is an mpirun that sleeps briefly before each of two waits, and sends SIGTERM after the
// first.
type sleeper struct {
	states     []string // what sleep returns, the last one for ever
	interrupts int
	term       chan os.Signal
}

func newSleeper(term chan os.Signal) *sleeper {
	return &sleeper{term: term, states: []string{"", "1", "", "2", "3"}}
}

func (m *sleeper) sleep() string {
	state := m.states[0]
	if len(m.states) > 1 {
		m.states = m.states[1:]
	}
	return state
}

func (m *sleeper) interrupt() {
	if m.interrupts++; m.interrupts == 1 {
		m.term <- syscall.SIGTERM
		m.states = []string{"", "4", "", "", "5"}
	}
}

func TestTurnAwait(t *testing.T) {
	for name, c := range map[string]struct {
		turn       Turn
		signal     os.Signal // that has come already
		want       bool      // await returns
		interrupts int
	}{
		"at once":                         {AtOnce, nil, true, 0},
		"SIGCONT":                         {AfterSIGCONT, syscall.SIGCONT, true, 0},
		"SIGTERM before SIGCONT was seen": {AfterSIGCONT, syscall.SIGTERM, true, 0},
		"no signal":                       {AfterSIGCONT, nil, false, 0},
		"ends the waits":                  {EndsWaits, syscall.SIGCONT, true, 2},
		"ends the second wait":            {EndsWaits, syscall.SIGTERM, true, 1},
		"nothing to end":                  {EndsWaits, nil, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := Signals{cont: make(chan os.Signal, 1), term: make(chan os.Signal, 1)}
			switch c.signal {
			case syscall.SIGCONT:
				s.cont <- c.signal
			case syscall.SIGTERM:
				s.term <- c.signal
			}
			limit := time.Minute
			if !c.want {
				limit = 20 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			m := newSleeper(s.term)
			s.await(ctx, c.turn, m)
			if got := ctx.Err() == nil; got != c.want || m.interrupts != c.interrupts {
				t.Errorf("await returned before its context ended: %t, after %d interrupts, want %t, %d",
					got, m.interrupts, c.want, c.interrupts)
			}
			if c.interrupts == 2 && len(m.states) > 1 {
				t.Errorf("the second interrupt came before the wait, whose states are %q", m.states)
			}
		})
	}
}

// A wait that has ended already (SIGTERM has come) is not waited for.
func TestEndWaitThatIsOver(t *testing.T) {
	term := make(chan os.Signal, 1)
	term <- syscall.SIGTERM
	m := &sleeper{states: []string{""}}
	if !(Signals{}).endWait(t.Context(), m, term) || m.interrupts != 0 {
		t.Errorf("endWait did not succeed, or sent %d interrupts", m.interrupts)
	}
}

func TestSleep(t *testing.T) {
	for state, want := range map[string]string{
		"R (running)": "", "D (disk sleep)": "", "S (sleeping)": "12\n", "Z (zombie)": "12\n",
	} {
		root := fstest.MapFS{"proc/7/status": {Data: []byte(
			"Name:\tState:\\tR\nUmask:\t0022\nState:\t" + state + "\nvoluntary_ctxt_switches:\t12\n")}}
		if got := (process{root, 7}).sleep(); got != want {
			t.Errorf("state %q: sleep %q, want %q", state, got, want)
		}
	}
	if got := (process{fstest.MapFS{}, 7}).sleep(); got != "ended" {
		t.Errorf("without a process: sleep %q", got)
	}
}

// A task whose parent has died does not wait, nor signal whoever has adopted it.
func TestParentHasDied(t *testing.T) {
	s := Catch()
	defer signal.Stop(s.cont)
	defer signal.Stop(s.term)
	s.parent = 1 << 30 // no process
	began := time.Now()
	if s.Await(AfterSIGCONT); time.Since(began) >= timeout {
		t.Errorf("waited %v for mpirun", timeout)
	}
}
