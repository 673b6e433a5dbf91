// Package interfaces lists the network interfaces of this host with their addresses.
package interfaces

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"unsafe"
)

// An Interface is a network interface of this host.
type Interface struct {
	Name                    string
	Index                   int
	Up, Loopback, Multicast bool
	Addrs                   []netip.Prefix // with the prefix length of their network
}

// Has tells whether the interface has an address of this host. A zone does not matter.
func (i Interface) Has(addr string) bool {
	a, err := netip.ParseAddr(addr)
	is := func(p netip.Prefix) bool { return p.Addr() == a.Unmap().WithZone("") }
	return err == nil && slices.ContainsFunc(i.Addrs, is)
}

// maxNames is how many names of interfaces a message has.
const maxNames = 8

// Names are the names of the interfaces for a message; of more than 8, the first ones.
func Names(list []Interface) string {
	var names []string
	for _, i := range list[:min(len(list), maxNames)] {
		names = append(names, i.Name)
	}
	text := strings.Join(names, ", ")
	if more := len(list) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// List returns the network interfaces of this host. The kernel lists all addresses once:
// [net.Interface.Addrs] has it list them all for each interface, of which a host of containers has
// hundreds.
func List() ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cannot list the network interfaces: %w", err)
	}
	addrs, err := addresses()
	if err != nil {
		return nil, fmt.Errorf("cannot list the addresses of the network interfaces: %w", err)
	}
	list := make([]Interface, 0, len(all))
	for _, i := range all {
		list = append(list, Interface{
			Name: i.Name, Index: i.Index, Addrs: addrs[i.Index],
			Up:        i.Flags&net.FlagUp != 0,
			Loopback:  i.Flags&net.FlagLoopback != 0,
			Multicast: i.Flags&net.FlagMulticast != 0,
		})
	}
	return list, nil
}

// addresses returns the addresses of all interfaces, by the index of the interface.
func addresses() (map[int][]netip.Prefix, error) {
	table, err := syscall.NetlinkRIB(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
	if err != nil {
		return nil, os.NewSyscallError("netlinkrib", err)
	}
	messages, err := syscall.ParseNetlinkMessage(table)
	if err != nil {
		return nil, os.NewSyscallError("parsenetlinkmessage", err)
	}
	addrs := map[int][]netip.Prefix{}
	for _, m := range messages {
		if m.Header.Type != syscall.RTM_NEWADDR || len(m.Data) < syscall.SizeofIfAddrmsg {
			continue
		}
		about := *(*syscall.IfAddrmsg)(unsafe.Pointer(&m.Data[0]))
		attributes, err := syscall.ParseNetlinkRouteAttr(&m)
		if err != nil {
			return nil, os.NewSyscallError("parsenetlinkrouteattr", err)
		}
		if a := ownAddress(attributes); a.IsValid() {
			i := int(about.Index)
			addrs[i] = append(addrs[i], netip.PrefixFrom(a, int(about.Prefixlen)))
		}
	}
	return addrs, nil
}

// ownAddress returns the address of this host: IFA_LOCAL. IFA_ADDRESS is that of the other end of a
// point-to-point link, and otherwise the same; IPv6 often has only that.
func ownAddress(attributes []syscall.NetlinkRouteAttr) (own netip.Addr) {
	for _, a := range attributes {
		addr, ok := netip.AddrFromSlice(a.Value)
		switch {
		case !ok:
		case a.Attr.Type == syscall.IFA_LOCAL:
			return addr
		case a.Attr.Type == syscall.IFA_ADDRESS:
			own = addr
		}
	}
	return own
}

// WithAddr returns the name of the interface that has an address of this host; "" if none has.
func WithAddr(addr string) string {
	list, _ := List()
	for _, i := range list {
		if i.Has(addr) {
			return i.Name
		}
	}
	return ""
}
