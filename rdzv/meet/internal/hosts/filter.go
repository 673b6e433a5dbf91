package hosts

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// A Filter narrows which addresses of this host are used. The zero value takes all usable ones.
type Filter struct {
	nets     []netip.Prefix
	names    []string
	notNames []string
}

// ParseFilter reads the values of --net: a network (10.78.0.0/24), an interface's name (eth1), or a
// name not to use (!docker0). Without any of the first two, all usable interfaces are taken but
// those named with "!".
func ParseFilter(specs []string) (Filter, error) {
	var f Filter
	for _, spec := range specs {
		name, not := strings.CutPrefix(spec, "!")
		switch p, err := netip.ParsePrefix(name); {
		case name == "" || len(name) > 64 || strings.ContainsAny(name, " \t\n"):
			return Filter{}, fmt.Errorf("cannot use network %q: neither a network like 10.0.0.0/24 nor an interface like eth0", spec)
		case err == nil && not:
			return Filter{}, fmt.Errorf("cannot use network %q: a ! excludes an interface, by its name", spec)
		case err == nil:
			f.nets = append(f.nets, p.Masked())
		case strings.Contains(name, "/"):
			return Filter{}, fmt.Errorf("cannot use network %q: not a network like 10.0.0.0/24", spec)
		case not:
			f.notNames = append(f.notNames, name)
		default:
			f.names = append(f.names, name)
		}
	}
	return f, nil
}

// local begins the names of interfaces that lead nowhere but into this host: bridges and ends of
// containers and virtual machines. Their addresses are often the same on every host.
var local = []string{"docker", "br-", "veth", "virbr", "vnet", "cni", "flannel", "cali", "cilium", "lxc", "lxdbr", "podman", "nerdctl", "weave", "kube-", "dummy"}

func leadsNowhere(name string) bool {
	return slices.ContainsFunc(local, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// Usable picks the interfaces, each with the addresses, by which other hosts can reach this one:
// up, not loopback, not local to this host. A Filter that says yes wins over that last rule.
// Link-local addresses count only where an interface has no other.
func Usable(all []Interface, f Filter) []Interface {
	var list []Interface
	for _, i := range all {
		if !i.Up || i.Loopback {
			continue
		}
		i.Addrs = f.pick(i, !leadsNowhere(i.Name))
		if len(i.Addrs) > 0 {
			list = append(list, i)
		}
	}
	return list
}

// pick gives the addresses of one interface that pass; byDefault is what to do with it where the
// filter says neither yes nor no.
func (f Filter) pick(i Interface, byDefault bool) []netip.Prefix {
	if slices.Contains(f.notNames, i.Name) {
		return nil
	}
	var global, linkLocal []netip.Prefix
	for _, p := range i.Addrs {
		switch {
		case !f.takes(i.Name, p.Addr(), byDefault):
		case p.Addr().IsLinkLocalUnicast():
			linkLocal = append(linkLocal, p)
		default:
			global = append(global, p)
		}
	}
	if len(global) > 0 {
		return global
	}
	return linkLocal
}

func (f Filter) takes(name string, a netip.Addr, byDefault bool) bool {
	if len(f.names)+len(f.nets) == 0 {
		return byDefault
	}
	if slices.Contains(f.names, name) {
		return true
	}
	for _, n := range f.nets {
		if n.Contains(a.Unmap()) {
			return true
		}
	}
	return false
}
