package wrap

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// TestPairing: the events are written as [signal shared].
func TestPairing(t *testing.T) {
	term, hup, usr1 := syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1
	at := func(ms int) time.Time { return time.UnixMilli(int64(1000000 + ms)) }
	of := func(watchdogs ...int) []int { return watchdogs }
	for _, row := range []struct {
		name string
		do   func(p *pairing)
		want string
	}{
		{"alone", func(p *pairing) {
			p.signal(term, at(0), of(7))
			p.replied(7, at(5))
			p.expire(at(105))
		}, "[15 false]"},
		{"just before the deadline", func(p *pairing) {
			p.signal(term, at(0), of(7))
			p.replied(7, at(5))
			p.expire(at(104))
		}, "[]"},
		{"no reply yet", func(p *pairing) {
			p.signal(term, at(0), of(7))
			p.expire(at(999))
		}, "[]"},
		{"no reply", func(p *pairing) {
			p.signal(term, at(0), of(7))
			p.expire(at(1000))
		}, "[15 false]"},
		{"reported after the reply", func(p *pairing) {
			p.signal(term, at(0), of(7))
			p.replied(7, at(1))
			p.report(term, at(9))
		}, "[15 true]"},
		{"reply before the second", func(p *pairing) {
			p.signal(term, at(0), of(7))
			p.signal(hup, at(1), of(7))
			p.replied(7, at(2))
			p.expire(at(100))
			p.report(hup, at(101))
			p.replied(7, at(101))
			p.expire(at(201))
		}, "[1 true][15 false]"},
		{"other signals follow", func(p *pairing) {
			p.signal(term, at(0), of(7))
			p.replied(7, at(1))
			for ms := 40; ms <= 120; ms += 40 {
				p.signal(usr1, at(ms), of(7))
				p.expire(at(ms))
			}
		}, "[15 false]"},
		{"expired, then reply", func(p *pairing) {
			p.signal(term, at(0), of(7))
			p.expire(at(1000))
			p.replied(7, at(1001))
			p.signal(hup, at(1002), of(7))
			p.replied(7, at(1003))
			p.expire(at(1103))
		}, "[15 false][1 false]"},
		{"reported, then reply", func(p *pairing) {
			p.signal(term, at(0), of(7))
			p.report(term, at(1))
			p.signal(hup, at(2), of(7))
			p.replied(7, at(3)) // for SIGTERM
			p.expire(at(200))
			p.report(hup, at(201))
		}, "[15 true][1 true]"},
		{"two sentinels", func(p *pairing) {
			p.signal(term, at(0), of(7, 8))
			p.signal(hup, at(1), of(7, 8))
			p.replied(7, at(2))
			p.replied(7, at(3))
			p.expire(at(200))
			p.report(hup, at(201))
			p.replied(8, at(202))
			p.expire(at(302))
		}, "[1 true][15 false]"},
		{"sentinel ended", func(p *pairing) {
			p.signal(term, at(0), of(7))
			p.expire(at(1).Add(replyWait))
		}, "[15 false]"},
		{"report first", func(p *pairing) {
			p.report(term, at(0))
			p.signal(term, at(1), of(7))
		}, "[15 true]"},
		{"signal first", func(p *pairing) {
			p.signal(term, at(0), of(7))
			p.report(term, at(1))
			p.expire(at(5000))
		}, "[15 true]"},
		{"no sentinel", func(p *pairing) {
			p.signal(term, at(0), nil)
		}, "[15 false]"},
		{"report of another signal", func(p *pairing) {
			p.report(hup, at(0))
			p.signal(term, at(1), of(7))
			p.expire(at(5000))
		}, "[15 false]"},
		{"old report", func(p *pairing) {
			p.report(term, at(0))
			p.signal(term, at(1001), of(7))
			p.expire(at(5000))
		}, "[15 false]"},
		{"each report counts once", func(p *pairing) {
			p.report(term, at(0))
			p.signal(term, at(1), of(7))
			p.signal(term, at(2), of(7))
			p.expire(at(5000))
		}, "[15 true][15 false]"},
		{"two signals", func(p *pairing) {
			p.signal(term, at(0), of(7))
			p.signal(hup, at(0), of(7))
			p.report(hup, at(1))
			p.expire(at(5000))
		}, "[1 true][15 false]"},
	} {
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
			t.Errorf("%s: got %s, want %s", row.name, got, row.want)
		}
	}
}
