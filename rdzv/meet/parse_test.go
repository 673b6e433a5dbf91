package meet

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdzv/rdzv/secret"
)

// recorded reads the environment of a rank that a real launcher has started; see dev/launchers.md.
func recorded(t testing.TB, name string) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".env"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	env := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "=")
		env[name] = value
	}
	return env
}

func TestContact(t *testing.T) {
	key := secret.NewKey()
	addrs := []netip.Addr{netip.MustParseAddr("10.77.0.12"), netip.MustParseAddr("fd00::12")}
	got, err := parseContact(contact{key, addrs, 29601}.reveal())
	if err != nil || got.key != key || !slices.Equal(got.addrs, addrs) || got.port != 29601 {
		t.Errorf("parseContact = %v, %v, %d, %v", got.key, got.addrs, got.port, err)
	}
	long := netip.MustParseAddr("fd00:1111:2222:3333:4444:5555:6666:7777")
	many := slices.Repeat([]netip.Addr{long}, 100)
	if text := (contact{key, many, 1}).reveal(); len(text) > maxContact ||
		strings.Contains(text, " ") {
		t.Errorf("contact of %d bytes: %s", len(text), text)
	} else if some, err := parseContact(text); err != nil || len(some.addrs) < 10 {
		t.Errorf("%d addresses, %v", len(some.addrs), err)
	}
	if _, err := parseContact(failed); !errors.Is(err, errRank0) {
		t.Error(err)
	}
}

func FuzzContact(f *testing.F) {
	f.Add(contact{secret.NewKey(), loopbackAddrs, 29600}.reveal())
	f.Fuzz(func(t *testing.T, text string) {
		ct, err := parseContact(text)
		if err == nil && (len(ct.addrs) == 0 || ct.port < 0 || ct.port > 65535) {
			t.Errorf("parseContact(%q): %v, %d", text, ct.addrs, ct.port)
		}
	})
}

func TestParseJoin(t *testing.T) {
	key := secret.NewKey()
	for _, addr := range []string{"10.77.0.11:29600", "[fd00::1]:29600", "[fe80::1%eth0]:29600"} {
		got, k, err := parseJoin(" " + addr + "/" + key.Reveal() + "\n")
		if err != nil || !slices.Equal(got, []netip.AddrPort{netip.MustParseAddrPort(addr)}) || *k != key {
			t.Errorf("parseJoin of %s = %v, %v, %v", addr, got, k, err)
		}
	}
	got, k, err := parseJoin("10.77.0.11:29600,[fd00::1]:29601/" + key.Reveal())
	want := []netip.AddrPort{
		netip.MustParseAddrPort("10.77.0.11:29600"), netip.MustParseAddrPort("[fd00::1]:29601"),
	}
	if err != nil || !slices.Equal(got, want) || *k != key {
		t.Errorf("parseJoin of two addresses = %v, %v", got, err)
	}
	for _, bad := range []string{
		"", "/", "node1:29600/" + key.Reveal(), "10.0.0.1/" + key.Reveal(),
		"10.0.0.1:1,/" + key.Reveal(),
		"10.0.0.1:0/" + key.Reveal(), "0.0.0.0:1/" + key.Reveal(),
		"10.0.0.1:1/" + key.Reveal()[1:],
	} {
		if _, _, err := parseJoin(bad); err == nil {
			t.Errorf("parseJoin(%q) succeeds", bad)
		} else if strings.Contains(err.Error(), key.Reveal()[5:15]) {
			t.Errorf("the error repeats the key: %v", err)
		}
	}
}

func FuzzJoin(f *testing.F) {
	f.Add("10.0.0.1:1/" + secret.NewKey().Reveal())
	f.Fuzz(func(t *testing.T, text string) {
		if addrs, _, err := parseJoin(text); err == nil && (len(addrs) == 0 || addrs[0].Port() == 0) {
			t.Errorf("parseJoin(%q) = %v", text, addrs)
		}
	})
}

func TestParseStore(t *testing.T) {
	for text, want := range map[string]string{
		"node1": "node1 0", "node1:29700": "node1 29700", "a.cluster.org": "a.cluster.org 0",
		"10.0.0.1": "10.0.0.1 0", "10.0.0.1:1": "10.0.0.1 1",
		"::1": "::1 0", "[::1]": "::1 0", "[::1]:65535": "::1 65535",
		"fe80::1%eth0": "fe80::1%eth0 0", "[fe80::1%eth0]:7": "fe80::1%eth0 7",
	} {
		host, port, err := ParseStore(text)
		if got := fmt.Sprint(host, " ", port); err != nil || got != want {
			t.Errorf("ParseStore(%q) = %s, %v, want %s", text, got, err, want)
		}
	}
	for _, bad := range []string{
		"", ":", ":29700", "node1:", "node1:0", "node1:70000", "node1:http", "a b", "a,b",
		"http://node1:2379", "node1/x", "[::1", "[::1]:", "[node1]:x", "a:b:c",
	} {
		if host, port, err := ParseStore(bad); err == nil {
			t.Errorf("ParseStore(%q) = %q, %d, want an error", bad, host, port)
		}
	}
}

func FuzzStore(f *testing.F) {
	f.Add("[fe80::1%eth0]:7")
	f.Fuzz(func(t *testing.T, text string) {
		host, port, err := ParseStore(text)
		if err == nil && (host == "" || port < 0 || port > 65535) {
			t.Errorf("ParseStore(%q) = %q, %d", text, host, port)
		}
	})
}
