package reach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdzv/internal/procfs"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/tally"
)

// Whenever rank 0 begins to listen, that is found at most lastPause later, so that what is reported
// then is true.
func TestLateRank0IsFoundSoon(t *testing.T) {
	for _, listens := range []time.Duration{firstLook, 5 * time.Second, 76 * time.Second, time.Hour} {
		t.Run(listens.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				lookUntil(t.Context(), func() bool { return time.Since(begin) >= listens })
				if late := time.Since(begin) - listens; late > lastPause {
					t.Errorf("it is found %v later", late)
				}
			})
		})
	}
}

// Only workers that run can be missing: one that has ended has probably left the process group.
func TestAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	var all tally.Tally
	all.Number = 4
	all.Progress = func([]rdzv.Worker) {}
	defer all.Close()
	for _, rank := range []int{6, 5, 7} {
		all.Start(tally.Process{Rank: rank, PID: os.Getpid()})
	}
	all.End(rdzv.Worker{Rank: 7})
	w := Workers{Proc: procfs.System, World: rdzv.World{Size: 8, MasterPort: port}, Tally: &all}
	if got := w.Answer(); !slices.Equal(got.Missing, []int{5, 6}) {
		t.Errorf("ranks %v are missing, want 5 and 6", got.Missing)
	}
	if l, err = net.Listen("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := w.Answer(); len(got.Missing) > 0 {
		t.Errorf("ranks %v are missing, want none", got.Missing)
	}
}

// answered is the answer of an agent on a node, whose ranks are missing.
func answered(t *testing.T, node int, python int, ranks ...int) rdzv.Answer {
	t.Helper()
	value, err := json.Marshal(Answer{ranks, python})
	if err != nil {
		t.Fatal(err)
	}
	return rdzv.Answer{
		Peer:  rdzv.Peer{Host: fmt.Sprint("node", node), Seat: rdzv.Seat{Node: node}},
		Value: value,
	}
}

// The nodes of what is missing are in the order of their node ranks, also if a node has several
// agents, and the process is that of the lowest rank. What an agent cannot answer is not missing.
func TestProgress(t *testing.T) {
	w := Watch{Workers: Workers{World: rdzv.World{Size: 8}}}
	broken := answered(t, 0, 0)
	broken.Value, broken.Error = nil, "unknown question"
	p := w.progress([]rdzv.Answer{
		answered(t, 2, 71, 5, 6), broken, answered(t, 0, 0), answered(t, 1, 72, 3), answered(t, 2, 73, 4),
	}, 12*time.Second)
	const want = "ranks 3 (node1), 4-6 (node2) have not reached init_process_group; 4 of 8 ranks have " +
		"been waiting for 12s"
	if p.String() != want || *p.First != 3 || p.Python != 72 || p.Host != "node1" {
		t.Errorf("%q, first rank %d, process %d on %s, want %q", p, *p.First, p.Python, p.Host, want)
	}
	if p := w.progress([]rdzv.Answer{broken}, 0); p.Reached != p.Ranks || p.First != nil {
		t.Errorf("%+v, want that all have reached it", p)
	}
}

// When the agents are asked, and what is reported.
func TestSchedule(t *testing.T) {
	const first, second, third = 10 * time.Second, time.Minute, 5 * time.Minute
	is := func(n int, f found) []found { return slices.Repeat([]found{f}, n) }
	for name, c := range map[string]struct {
		late  bool
		found []found // by one question after another
		at    []time.Duration
		said  []time.Duration // when something is reported
	}{
		"all in time": {found: is(1, complete), at: []time.Duration{first}},
		"late": {
			found: slices.Concat(is(2, isMissing), is(1, complete)),
			at:    []time.Duration{first, first + askAgain, first + 2*askAgain},
			said:  []time.Duration{first, first + 2*askAgain},
		},
		"never": {
			found: is(22, isMissing),
			said:  []time.Duration{first, second, third},
		},
		"one does not answer": {
			found: slices.Concat(is(1, unknown), is(1, isMissing), is(1, unknown), is(1, complete)),
			at:    []time.Duration{first, first + askAgain, first + 2*askAgain, first + 3*askAgain},
			said:  []time.Duration{first + askAgain, first + 3*askAgain},
		},
		"one does not answer, none is missing": {
			found: slices.Concat(is(1, unknown), is(1, complete)),
			at:    []time.Duration{first, first + askAgain},
		},
		"after a late rank 0": {late: true, found: is(1, complete), at: []time.Duration{soon},
			said: []time.Duration{soon}},
		"after a late rank 0, one is missing": {
			late: true, found: slices.Concat(is(2, isMissing), is(1, complete)),
			at:   []time.Duration{soon, first, first + askAgain},
			said: []time.Duration{soon, first, first + askAgain},
		},
	} {
		s := newSchedule(c.late)
		at, more := s.first()
		var asked, said []time.Duration
		for i, f := range c.found {
			if !more {
				t.Errorf("%s: nothing is asked after %v", name, asked)
				break
			}
			asked = append(asked, at)
			now := at
			var report bool
			if report, at, more = s.next(now, f); report {
				said = append(said, now)
			}
			if last := i == len(c.found)-1; last && more != (f != complete) {
				t.Errorf("%s: asks again: %t", name, more)
			}
		}
		if c.at != nil && !slices.Equal(asked, c.at) || !slices.Equal(said, c.said) {
			t.Errorf("%s: asks at %v, reports at %v, want %v and %v", name, asked, said, c.at, c.said)
		}
	}
	s, asked := newSchedule(false), 0
	for at, more := s.first(); more && at < 24*time.Hour; asked++ {
		_, at, more = s.next(at, isMissing)
	}
	if asked < 20 || asked > 100 {
		t.Errorf("the agents are asked %d times in a day", asked)
	}
}

// serving is rank 0: this process listens on a port and is connected to it, until stop.
func serving(t *testing.T) (port int, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return l.Addr().(*net.TCPAddr).Port, func() { l.Close(); conn.Close() }
}

// What is asked and reported of a job whose rank 3 is late. The agents are asked again if they could
// not be asked, and not any more when rank 0 has left the process group.
func TestWatch(t *testing.T) {
	for name, leaves := range map[string]bool{"all reach it": false, "rank 0 leaves": true} {
		t.Run(name, func(t *testing.T) {
			port, stop := serving(t)
			defer stop()
			var own tally.Tally
			own.Start(tally.Process{PID: os.Getpid()})
			var said []string
			asked := 0
			synctest.Test(t, func(t *testing.T) {
				w := Watch{
					Workers: Workers{
						Proc: procfs.System, World: rdzv.World{Size: 4, MasterPort: port}, Tally: &own,
					},
					Ask: func(context.Context, rdzv.Question) ([]rdzv.Answer, []rdzv.Peer, error) {
						switch asked++; {
						case asked == 1:
							return nil, nil, errors.New("another question")
						case asked == 2:
							return []rdzv.Answer{answered(t, 0, 0), answered(t, 1, 71, 3)}, nil, nil
						case leaves:
							stop()
							return []rdzv.Answer{answered(t, 1, 71, 3)}, nil, nil
						}
						return []rdzv.Answer{answered(t, 0, 0), answered(t, 1, 0)}, nil, nil
					},
					Report: func(_ context.Context, p rdzv.InitProgress) { said = append(said, p.String()) },
				}
				w.Run(t.Context())
			})
			want := []string{"rank 3 (node1) has not reached init_process_group; 3 of 4 ranks have been " +
				"waiting for 18s"}
			if !leaves {
				want = append(want, "all 4 ranks have reached init_process_group by now, 26s after rank 0 did")
			}
			if !slices.Equal(said, want) || asked != 3 {
				t.Errorf("asked %d times, reported %q", asked, strings.Join(said, "\n"))
			}
		})
	}
}
