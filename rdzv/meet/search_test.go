package meet

import (
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// The later ports of the sequence are for a store that found the first one taken. To ask there is of use only when
// somebody else has answered at the first, and else would be most of what agents do while they wait for the store.
func TestLaterPortsAreAskedWhenTheFirstIsTaken(t *testing.T) {
	here, there := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	for _, row := range []struct {
		name   string
		answer error
		soon   bool
	}{
		{"nobody listens", syscall.ECONNREFUSED, false},
		{"another program", errGreeting, true},
		{"a store whose job is over", errClosed, true},
		{"another job", ErrOtherJob, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &search{tries: map[netip.AddrPort]*try{}, told: func(Stranger) {}}
			begun := time.Now()
			offerAll(s.take, "node1", 0, []netip.Addr{here, there}, []int{29701, 29702, 29703})
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
