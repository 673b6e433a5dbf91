package wire

import (
	"net/netip"
	"slices"
	"testing"
)

func TestAddrs(t *testing.T) {
	four := netip.MustParseAddrPort("10.77.0.11:29600")
	six := netip.MustParseAddrPort("[fe80::1%eth0]:29600")
	got, err := ParseAddrs(FormatAddrs([]netip.AddrPort{four, six}))
	want := []netip.AddrPort{four, netip.MustParseAddrPort("[fe80::1]:29600")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("ParseAddrs(FormatAddrs(...)) = %v, %v, want %v", got, err, want)
	}
	got, err = ParseAddrs(FormatAddrs(slices.Repeat([]netip.AddrPort{four}, 50)))
	if err != nil || len(got) != MaxAddrs {
		t.Errorf("%d addresses, %v, want %d", len(got), err, MaxAddrs)
	}
	for _, bad := range []string{
		"", ",", "10.0.0.1", "10.0.0.1:0", "0.0.0.0:1", "224.0.0.1:1", "[fe80::1%eth0]:1",
		"10.0.0.1:1,", "node1:1",
	} {
		if got, err := ParseAddrs(bad); err == nil {
			t.Errorf("ParseAddrs(%q) = %v, want an error", bad, got)
		}
	}
}

func TestWord(t *testing.T) {
	for name, want := range map[string]string{
		"node1.x": "node1.x", "node 1\x1b[31m": "node-1--31m", "": "-", "\n": "-",
	} {
		if got := Word(name); got != want {
			t.Errorf("Word(%q) = %q, want %q", name, got, want)
		}
	}
}

func FuzzAddrs(f *testing.F) {
	f.Add("10.77.0.11:29600,[fd00::1]:1")
	f.Fuzz(func(t *testing.T, text string) {
		addrs, err := ParseAddrs(text)
		if err == nil && (len(addrs) == 0 || len(addrs) > MaxAddrs) {
			t.Errorf("ParseAddrs(%q): %d addresses", text, len(addrs))
		}
	})
}
