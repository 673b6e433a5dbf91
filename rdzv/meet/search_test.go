package meet

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"rdzv/rdzv/meet/internal/gate"
)

// The later ports of the sequence are for a store that found the first one taken. To ask there is
// of use only when somebody else has answered at the first, and else would be most of what agents
// do while they wait for the store.
func TestLaterPortsAreAskedWhenTheFirstIsTaken(t *testing.T) {
	here, there := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	for _, row := range []struct {
		name   string
		answer error
		soon   bool
	}{
		{"nobody listens", syscall.ECONNREFUSED, false},
		{"there is no such host", syscall.EHOSTUNREACH, false},
		{"one of ours has made way", gate.MovedError{To: netip.MustParseAddrPort("127.0.0.3:1")}, false},
		{"another program", gate.ErrNotStore, true},
		{"a store whose job is over", errClosed, true},
		{"another job", gate.ErrOtherJob, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &search{tries: tries{}, told: func(gate.Stranger) {}}
			begun := time.Now()
			offerAll(s.tries.take, "node1", 0, []netip.Addr{here, there}, []int{29701, 29702, 29703})
			if first := s.tries[netip.AddrPortFrom(here, 29701)]; first.next.After(time.Now()) {
				t.Errorf("the first port is not tried at once, but after %v", first.next.Sub(begun))
			}
			s.judge(answered{found{addr: netip.AddrPortFrom(here, 29701)}, row.answer})
			for n, port := range []uint16{29702, 29703} {
				for _, addr := range []netip.Addr{here, there} {
					soon := row.soon && addr == here
					try := s.tries[netip.AddrPortFrom(addr, port)]
					if waits := try.next.Sub(begun) >= time.Duration(n+1)*lastWait; waits == soon {
						t.Errorf("%v is tried after %v", try.addr, try.next.Sub(begun))
					}
				}
			}
		})
	}
}

// What names a port exactly is believed: it is tried at once though it was thought to be unlikely.
func TestAnExactOfferIsTriedAtOnce(t *testing.T) {
	s := &search{tries: tries{}}
	addr := netip.MustParseAddrPort("127.0.0.1:29703")
	s.tries.take(offer{addr: addr, likely: 20, nth: 5})
	s.tries.take(offer{addr: addr, likely: 0})
	if next := s.tries[addr].next; next.After(time.Now()) {
		t.Errorf("it is tried in %v", time.Until(next))
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
	s.tries.take(offer{addr: netip.MustParseAddrPort("127.0.0.1:29702"), nth: 1})
	s.tries[first].started = time.Now()
	var e *NotFoundError
	if err := s.notFound(nil); !errors.As(err, &e) || fmt.Sprint(e.answers()) != "[127.0.0.1 port 29701: no answer yet]" {
		t.Errorf("told: %v", err)
	}
}
