package beacon

import (
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/meet/internal/hosts"
	"rdzv/rdzv/meet/internal/wire"
	"rdzv/rdzv/secret"
)

var testToken = []byte("0123456789abcdef0123456789abcdef")

func TestBeacon(t *testing.T) {
	key := secret.Expand(testToken, "beacon", 32)
	b := Beacon{
		Hosting: true, Public: hex.EncodeToString(secret.PublicName("job")),
		ID:   strings.Repeat("1", 96),
		Host: "node 1\x1b[31m", Addrs: []netip.AddrPort{
			netip.MustParseAddrPort("10.77.0.11:29600"),
			netip.MustParseAddrPort("[fe80::1%eth0]:29600"),
		},
	}
	packet := b.Encode(key)
	got, err := Parse(packet, key)
	want := Beacon{
		Hosting: true, Public: b.Public, ID: b.ID, Host: "node-1--31m", Addrs: []netip.AddrPort{
			netip.MustParseAddrPort("10.77.0.11:29600"),
			netip.MustParseAddrPort("[fe80::1]:29600"),
		},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Parse = %+v, %v, want %+v", got, err, want)
	}
	if _, err := Parse(packet, secret.Expand(testToken, "other", 32)); !errors.Is(err, ErrMAC) {
		t.Errorf("different secret: %v, want ErrMAC", err)
	}
	for i := range packet {
		changed := slices.Clone(packet)
		changed[i] ^= 1
		if _, err := Parse(changed, key); err == nil {
			t.Errorf("valid although byte %d was changed: %q", i, changed)
		}
	}
	b.Addrs = slices.Repeat(b.Addrs, 50)
	if packet := b.Encode(key); len(packet) > maxLen {
		t.Errorf("a beacon of %d bytes", len(packet))
	} else if got, err := Parse(packet, key); err != nil || len(got.Addrs) != wire.MaxAddrs {
		t.Errorf("%d addresses, %v", len(got.Addrs), err)
	}
}

func FuzzBeacon(f *testing.F) {
	key := secret.Expand(testToken, "beacon", 32)
	f.Add(Beacon{
		Public: hex.EncodeToString(secret.PublicName("job")), ID: strings.Repeat("1", 96),
		Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.77.0.11:29600")},
	}.Encode(key))
	f.Fuzz(func(t *testing.T, packet []byte) {
		b, err := Parse(packet, key)
		if err != nil && !errors.Is(err, ErrMAC) {
			return
		}
		n := len(b.Addrs)
		if n == 0 || n > wire.MaxAddrs || strings.ContainsAny(b.Host, " \n\x1b") {
			t.Errorf("Parse(%q) = %+v", packet, b)
		}
	})
}

// What one socket sends, another socket on the same interface and port receives.
func TestSocket(t *testing.T) {
	lo := []hosts.Interface{{
		Name: "lo", Index: 1, Up: true, Loopback: true,
		Addrs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")},
	}}
	port := freePort(t)
	a, err := Open(t.Context(), lo, port)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Open(t.Context(), lo, port)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	received := make(chan string, 100)
	b.Receive(func(p Packet) { received <- string(p.Data) + " " + p.Zone })
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	again := time.NewTicker(50 * time.Millisecond) // a datagram may be lost
	defer again.Stop()
	for {
		a.Send([]byte("hello"))
		select {
		case got := <-received:
			if got != "hello lo" {
				t.Errorf("received %q", got)
			}
			return
		case <-again.C:
		case <-limit.C:
			t.Fatal("nothing was received")
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).Port
}

func TestNoMulticast(t *testing.T) {
	eth0 := []hosts.Interface{{Name: "eth0", Index: 2, Up: true}}
	if s, err := Open(t.Context(), eth0, 29600); err == nil {
		s.Close()
		t.Error("Open succeeds without an interface that supports multicast")
	}
}
