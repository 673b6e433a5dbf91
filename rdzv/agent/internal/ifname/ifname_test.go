package ifname

import (
	"net/netip"
	"strings"
	"testing"

	"rdzv/envmap"
	"rdzv/internal/interfaces"
)

func TestFaults(t *testing.T) {
	face := func(name string, addrs ...string) interfaces.Interface {
		i := interfaces.Interface{Name: name, Up: true}
		for _, a := range addrs {
			i.Addrs = append(i.Addrs, netip.MustParsePrefix(a))
		}
		return i
	}
	all := []interfaces.Interface{
		face("lo", "127.0.0.1/8"), face("eth0", "10.77.0.11/24"), face("eth1", "10.78.0.11/24"),
		face("ib0"),
	}
	const absent, excluded = "no network interface with an address has that name", "is kept, although"
	for _, c := range []struct{ variable, allowed, want string }{
		{"GLOO_SOCKET_IFNAME=eth0", "", ""},
		{"GLOO_SOCKET_IFNAME=eth", "", absent},
		{"GLOO_SOCKET_IFNAME=ib0", "", absent},
		{"GLOO_SOCKET_IFNAME=enP7s7", "", absent},
		{"GLOO_SOCKET_IFNAME=eth0,eth1", "", ""},
		{"GLOO_SOCKET_IFNAME=eth0", "10.78.0.11", excluded},
		{"GLOO_SOCKET_IFNAME=eth1", "10.78.0.11", ""},
		{"TP_SOCKET_IFNAME=nope", "", absent},
		{"NCCL_SOCKET_IFNAME=eth", "", ""},
		{"NCCL_SOCKET_IFNAME=eth", "10.78.0.11", ""},
		{"NCCL_SOCKET_IFNAME==eth", "", absent},
		{"NCCL_SOCKET_IFNAME==eth0:5000", "", ""},
		{"NCCL_SOCKET_IFNAME=nope,eth1", "", ""},
		{"NCCL_SOCKET_IFNAME=nope", "", absent},
		{"NCCL_SOCKET_IFNAME=^docker", "", ""},
		{"NCCL_SOCKET_IFNAME=^lo,eth", "", absent},
		{"NCCL_SOCKET_IFNAME=^=lo,eth1", "10.78.0.11", excluded},
		{"UCX_NET_DEVICES=nope", "", ""},
	} {
		name, value, _ := strings.Cut(c.variable, "=")
		n := Networks{Words: "eth1"}
		if c.allowed != "" {
			n.Allowed = []string{c.allowed}
		}
		got := faultsAmong(all, envmap.Env{name: value}, n)
		switch {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s, allowed %q: %v, want none", c.variable, c.allowed, got)
		case c.want != "" && (len(got) != 1 || !strings.Contains(got[0].Text, c.want)):
			t.Errorf("%s, allowed %q: %v, want %q", c.variable, c.allowed, got, c.want)
		}
	}
}
