package wire

import (
	"net/netip"
	"slices"
	"testing"
)

func TestAddrs(t *testing.T) {
	four, six := netip.MustParseAddrPort("10.77.0.11:29600"), netip.MustParseAddrPort("[fe80::1%eth0]:29600")
	got, err := ParseAddrs(FormatAddrs([]netip.AddrPort{four, six}))
	if want := []netip.AddrPort{four, netip.MustParseAddrPort("[fe80::1]:29600")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ParseAddrs(FormatAddrs(slices.Repeat([]netip.AddrPort{four}, 50))); err != nil || len(got) != MaxAddrs {
		t.Errorf("%d addresses, %v", len(got), err)
	}
	for _, bad := range []string{"", ",", "10.0.0.1", "10.0.0.1:0", "0.0.0.0:1", "224.0.0.1:1", "[fe80::1%eth0]:1", "10.0.0.1:1,", "node1:1"} {
		if got, err := ParseAddrs(bad); err == nil {
			t.Errorf("%q is fine: %v", bad, got)
		}
	}
}

func TestWord(t *testing.T) {
	for name, want := range map[string]string{"node1.x": "node1.x", "node 1\x1b[31m": "node-1--31m", "": "-", "\n": "-"} {
		if got := Word(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

func FuzzAddrs(f *testing.F) {
	f.Add("10.77.0.11:29600,[fd00::1]:1")
	f.Fuzz(func(t *testing.T, text string) {
		if addrs, err := ParseAddrs(text); err == nil && (len(addrs) == 0 || len(addrs) > MaxAddrs) {
			t.Errorf("%q: %d addresses", text, len(addrs))
		}
	})
}
