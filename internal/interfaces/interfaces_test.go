package interfaces

import (
	"fmt"
	"net"
	"slices"
	"testing"
)

// The list is the one of package net, which asks the kernel for each interface.
func TestListAgreesWithNet(t *testing.T) {
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint(i.Name, i.Index, i.Flags&net.FlagUp != 0,
			i.Flags&net.FlagLoopback != 0, i.Flags&net.FlagMulticast != 0, addrs))
	}
	list, err := List()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range list {
		got = append(got, fmt.Sprint(i.Name, i.Index, i.Up, i.Loopback, i.Multicast, i.Addrs))
	}
	if !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNames(t *testing.T) {
	list := make([]Interface, 10)
	for i := range list {
		list[i].Name = fmt.Sprint("eth", i)
	}
	for n, want := range map[int]string{
		0: "", 1: "eth0", 10: "eth0, eth1, eth2, eth3, eth4, eth5, eth6, eth7 and 2 more",
	} {
		if got := Names(list[:n]); got != want {
			t.Errorf("%d interfaces: %q, want %q", n, got, want)
		}
	}
}

func TestWithAddr(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1": "lo", "::ffff:127.0.0.1": "lo", "192.0.2.1": "", "": "", "node1": "",
	} {
		if got := WithAddr(addr); got != want {
			t.Errorf("the interface with %q is %q, want %q", addr, got, want)
		}
	}
}
