package meet

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// A port that is offered exactly, and not as a later one of the sequence, is tried as often as the
// first.
func TestAnExactOfferIsTriedOften(t *testing.T) {
	all := tries{}
	addr := netip.MustParseAddrPort("127.0.0.1:29703")
	for _, o := range []struct {
		offer
		want time.Duration
	}{
		{offer{addr: addr, likely: 20, later: true}, laterWait},
		{offer{addr: addr}, firstWait},
		{offer{addr: addr, later: true}, firstWait},
	} {
		all.take(o.offer)
		if got := all[addr].longer(); got != o.want {
			t.Errorf("after %+v it waits %v, not %v", o.offer, got, o.want)
		}
	}
}

// Of more addresses than a search remembers, it forgets the least likely.
func TestALikelyOfferFindsRoom(t *testing.T) {
	s := &search{tries: tries{}}
	address := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 1)
	}
	for i := range maxTries + 10 {
		s.tries.take(offer{addr: address(i), likely: i + 1})
	}
	beacon, last := address(maxTries+20), address(maxTries-1)
	s.tries.take(offer{addr: beacon})
	if len(s.tries) != maxTries || s.tries[beacon] == nil || s.tries[last] != nil || s.tries[address(0)] == nil {
		t.Errorf("%d tries, the new one %v, the last one %v", len(s.tries), s.tries[beacon], s.tries[last])
	}
}

// An address that nobody has got round to asking was not tried.
func TestOnlyWhatWasTriedIsTold(t *testing.T) {
	s := &search{tries: tries{}}
	first := netip.MustParseAddrPort("127.0.0.1:29701")
	s.tries.take(offer{addr: first})
	s.tries.take(offer{addr: netip.MustParseAddrPort("127.0.0.1:29702"), later: true})
	s.tries[first].started = time.Now()
	var e *NotFoundError
	if err := s.notFound(nil); !errors.As(err, &e) || fmt.Sprint(e.answers()) != "[127.0.0.1 port 29701: no answer yet]" {
		t.Errorf("told: %v", err)
	}
}
