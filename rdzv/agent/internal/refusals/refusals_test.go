package refusals

import (
	"net/netip"
	"slices"
	"testing"

	"rdzv/rdzv/meet"
)

// Agents are listed in the order in which they were refused, without those that have refused this one.
func TestList(t *testing.T) {
	var l List
	if l.ByToken() != nil || l.ByVersion() != nil {
		t.Error("the zero List is not empty")
	}
	addr := netip.MustParseAddr("10.77.0.12")
	for _, n := range []meet.Notice{
		meet.DifferentToken{Host: "b", Addr: addr}, meet.DifferentToken{Host: "c", Addr: addr, Hosting: true},
		meet.DifferentVersion{Host: "d", Addr: addr},
		meet.DifferentVersion{Host: "e", Addr: addr, Hosting: true},
		meet.DifferentToken{Host: "a", Addr: addr}, meet.NoPeerYet{},
	} {
		l.Note(n)
	}
	if got := l.ByToken(); !slices.Equal(got, []string{"b (10.77.0.12)", "a (10.77.0.12)"}) {
		t.Errorf("by token %q", got)
	}
	if got := l.ByVersion(); !slices.Equal(got, []string{"d (10.77.0.12)"}) {
		t.Errorf("by version %q", got)
	}
}
