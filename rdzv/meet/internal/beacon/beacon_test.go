package beacon

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
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
	made := secret.Expand(testToken, "beacon", 32)
	b := Beacon{Hosting: true, Public: hex.EncodeToString(secret.PublicName("job")), ID: NewID(), Host: "node 1\x1b[31m", Addrs: []netip.AddrPort{
		netip.MustParseAddrPort("10.77.0.11:29600"), netip.MustParseAddrPort("[fe80::1%eth0]:29600")}}
	packet := b.Encode(made)
	got, err := Parse(packet, made)
	if err != nil || got.ID != b.ID || !got.Hosting || got.Public != b.Public || got.Host != "node-1--31m" || fmt.Sprint(got.Addrs) != "[10.77.0.11:29600 [fe80::1]:29600]" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Parse(packet, secret.Expand(testToken, "other", 32)); !errors.Is(err, ErrMAC) {
		t.Errorf("another secret: %v", err)
	}
	for i := range packet {
		spoiled := slices.Clone(packet)
		spoiled[i] ^= 1
		if _, err := Parse(spoiled, made); err == nil {
			t.Errorf("with byte %d changed it is fine: %q", i, spoiled)
		}
	}
	b.Addrs = slices.Repeat(b.Addrs, 50)
	if packet := b.Encode(made); len(packet) > maxLen {
		t.Errorf("a beacon of %d bytes", len(packet))
	} else if got, err := Parse(packet, made); err != nil || len(got.Addrs) != wire.MaxAddrs {
		t.Errorf("%d addresses, %v", len(got.Addrs), err)
	}
}

func FuzzBeacon(f *testing.F) {
	made := secret.Expand(testToken, "beacon", 32)
	f.Add((Beacon{Public: hex.EncodeToString(secret.PublicName("job")), ID: NewID(), Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.77.0.11:29600")}}).Encode(made))
	f.Fuzz(func(t *testing.T, packet []byte) {
		b, err := Parse(packet, made)
		if (err == nil || errors.Is(err, ErrMAC)) && (len(b.Addrs) == 0 || len(b.Addrs) > wire.MaxAddrs || strings.ContainsAny(b.Host, " \n\x1b")) {
			t.Errorf("%q: %+v", packet, b)
		}
	})
}

// What one socket sends, another on the same interface and port receives.
func TestSocket(t *testing.T) {
	lo := []hosts.Interface{{Name: "lo", Index: 1, Up: true, Loopback: true, Addrs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}}}
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
	heard := make(chan string, 100)
	b.Listen(func(p Packet) { heard <- string(p.Data) + " " + p.Zone })
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	again := time.NewTicker(50 * time.Millisecond) // a datagram may be lost
	defer again.Stop()
	for {
		a.Send([]byte("hello"))
		select {
		case got := <-heard:
			if got != "hello lo" {
				t.Errorf("%q", got)
			}
			return
		case <-again.C:
		case <-limit.C:
			t.Fatal("nothing was heard")
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
	if s, err := Open(t.Context(), []hosts.Interface{{Name: "eth0", Index: 2, Up: true}}, 29600); err == nil {
		s.Close()
		t.Error("a socket without an interface")
	}
}
