package meet

import (
	"net/netip"
	"testing"
	"time"
)

// A port that is added as an exact address, and not as a later port of the sequence, is tried as
// often as the first.
func TestExactCandidateIsTriedOften(t *testing.T) {
	all := targets{}
	addr := netip.MustParseAddrPort("127.0.0.1:29703")
	for _, c := range []struct {
		candidate
		want time.Duration
	}{
		{candidate{addr: addr, priority: 20, laterPort: true}, laterPortWait},
		{candidate{addr: addr}, firstWait},
		{candidate{addr: addr, laterPort: true}, firstWait},
	} {
		all.add(c.candidate)
		if got := all[addr].nextWait(); got != c.want {
			t.Errorf("nextWait after %+v = %v, want %v", c.candidate, got, c.want)
		}
	}
}

// A full search replaces the candidate with the worst priority.
func TestFullSearchReplacesWorst(t *testing.T) {
	s := &search{targets: targets{}}
	address := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 1)
	}
	for i := range maxTargets + 10 {
		s.targets.add(candidate{addr: address(i), priority: i + 1})
	}
	beacon, last := address(maxTargets+20), address(maxTargets-1)
	s.targets.add(candidate{addr: beacon})
	if len(s.targets) != maxTargets || s.targets[beacon] == nil ||
		s.targets[last] != nil || s.targets[address(0)] == nil {
		t.Errorf("%d targets; new one %v, last one %v",
			len(s.targets), s.targets[beacon], s.targets[last])
	}
}

// An address that was not dialled is not reported as tried.
func TestNotFoundListsDialledAddressesOnly(t *testing.T) {
	s := &search{targets: targets{}, plan: &plan{}, rejections: &rejections{}}
	first := netip.MustParseAddrPort("127.0.0.1:29701")
	s.targets.add(candidate{addr: first})
	s.targets.add(candidate{addr: netip.MustParseAddrPort("127.0.0.1:29702"), laterPort: true})
	s.targets[first].started = time.Now()
	const want = "no store at 127.0.0.1 port 29701: no answer yet"
	if got := s.searching(0).String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Addresses that have not answered are tried after all others.
func TestSilentAddressesAreTriedLast(t *testing.T) {
	s := &search{plan: &plan{}, targets: targets{}}
	address := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(i+1))
	}
	for i := range burst {
		s.targets.add(candidate{addr: address(i)})
		s.targets[address(i)].timeouts = 1
	}
	other := address(burst)
	s.targets.add(candidate{addr: other, priority: 9})
	if s.due(); !s.targets[other].dialing {
		t.Error("it is tried after those that have not answered")
	}
}
