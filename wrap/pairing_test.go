package wrap

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestPairing: the events are written as [signal shared].
func TestPairing(t *testing.T) {
	term, hup, usr1 := syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1
	at := func(ms int) time.Time { return time.UnixMilli(int64(1000000 + ms)) }
	for _, row := range []struct {
		name string
		do   func(p *pairing)
		want string
	}{
		{"alone", func(p *pairing) { p.signal(term, at(0)); p.expire(at(100)) }, "[15 false]"},
		{"just before the deadline", func(p *pairing) { p.signal(term, at(0)); p.expire(at(99)) }, "[]"},
		{"reported after it", func(p *pairing) { p.signal(term, at(0)); p.report(term, at(9)) }, "[15 true]"},
		{"reported before it", func(p *pairing) { p.report(term, at(0)); p.signal(term, at(900)) }, "[15 true]"},
		{"an old report", func(p *pairing) {
			p.report(term, at(0))
			p.signal(term, at(1001))
			p.expire(at(1101))
		}, "[15 false]"},
		{"another signal is reported", func(p *pairing) {
			p.signal(term, at(0))
			p.signal(hup, at(1))
			p.report(hup, at(50))
			p.expire(at(100))
		}, "[1 true][15 false]"},
		{"other signals follow", func(p *pairing) {
			p.signal(term, at(0))
			for ms := 40; ms <= 120; ms += 40 {
				p.signal(usr1, at(ms))
				p.expire(at(ms))
			}
		}, "[15 false]"},
		{"each report once", func(p *pairing) {
			p.report(usr1, at(0))
			p.signal(usr1, at(1))
			p.signal(usr1, at(2))
			p.expire(at(102))
		}, "[10 true][10 false]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var p pairing
			row.do(&p)
			got := ""
			for _, e := range p.ready {
				got += fmt.Sprintf("[%d %v]", int(e.Signal), e.Shared)
			}
			if got == "" {
				got = "[]"
			}
			if got != row.want {
				t.Errorf("events %s, want %s", got, row.want)
			}
		})
	}
}

// A run without job control does not get its signals when another run of the process does.
func TestJobControlOfOneRun(t *testing.T) {
	with := &run{tree: &Tree{JobControl: true}, stops: make(chan os.Signal, 1)}
	without := &run{tree: &Tree{}, stops: make(chan os.Signal, 1)}
	s := &Source{runs: map[*run]bool{with: true, without: true}}
	s.takeStop(syscall.SIGTSTP)
	if len(with.stops) != 1 || len(without.stops) != 0 {
		t.Errorf("%d and %d signals, want one and none", len(with.stops), len(without.stops))
	}
}
