package hosts

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestDefaultRoutes(t *testing.T) {
	text := "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\n" +
		"eth1\t00004E0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n" +
		"eth0\t00000000\t01004D0A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
		"wlan0\t00000000\t01004D0A\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
	if got := strings.Join(defaultRoutes(text), " "); got != "eth0 wlan0" {
		t.Error(got)
	}
}

func TestUsable(t *testing.T) {
	all := []Interface{
		face("lo", "127.0.0.1/8"), face("docker0", "172.17.0.1/16"),
		face("eth0", "10.77.0.11/24", "fe80::1/64"),
		face("eth1", "10.78.0.11/24", "fd00::11/64"),
		face("veth12", "169.254.1.1/16"), face("ib0", "fe80::2/64"),
		face("br-0123456789ab", "172.18.0.1/16"), face("down0", "10.79.0.11/24"),
	}
	all[0].Loopback, all[7].Up = true, false
	for spec, want := range map[string]string{
		"":                 "10.77.0.11 10.78.0.11 fd00::11 fe80::2%ib0",
		"eth1":             "10.78.0.11 fd00::11",
		"10.77.0.0/16":     "10.77.0.11",
		"!eth0":            "10.78.0.11 fd00::11 fe80::2%ib0",
		"!eth0 !ib0":       "10.78.0.11 fd00::11",
		"docker0":          "172.17.0.1",
		"10.0.0.0/8 !eth0": "10.78.0.11",
		"fd00::/8 eth0":    "10.77.0.11 fd00::11",
		"192.168.0.0/16":   "",
		"lo":               "",
	} {
		f, err := ParseFilter(strings.Fields(spec))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Trim(fmt.Sprint(Addresses(Usable(all, f))), "[]")
		if got != want {
			t.Errorf("--net %q: %s, want %s", spec, got, want)
		}
	}
	for _, bad := range []string{"", "!", "10.0.0.0/33", "!10.0.0.0/8", "a b", "10.0.0.0/8/8"} {
		if f, err := ParseFilter([]string{bad}); err == nil {
			t.Errorf("ParseFilter(%q) = %v, want an error", bad, f)
		}
	}
}

func face(name string, prefixes ...string) Interface {
	i := Interface{Name: name, Up: true, Multicast: true}
	for _, p := range prefixes {
		i.Addrs = append(i.Addrs, netip.MustParsePrefix(p))
	}
	return i
}

func FuzzFilter(f *testing.F) {
	f.Add("!docker0")
	f.Add("10.78.0.0/24")
	f.Fuzz(func(t *testing.T, spec string) {
		if filter, err := ParseFilter([]string{spec}); err == nil {
			Usable([]Interface{face("eth0", "10.77.0.11/24")}, filter)
		}
	})
}
