package hosts

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// A Filter restricts the addresses of this host that are used. The zero value includes all usable
// ones.
type Filter struct {
	nets     []netip.Prefix
	names    []string
	excluded []string
}

// ParseFilter parses the values of --net: a network (10.78.0.0/24), an interface (eth1), or an
// interface to exclude (!docker0). Without networks and interfaces to include, all usable
// interfaces except the excluded ones are included.
func ParseFilter(specs []string) (Filter, error) {
	var f Filter
	for _, spec := range specs {
		name, not := strings.CutPrefix(spec, "!")
		switch p, err := netip.ParsePrefix(name); {
		case name == "" || len(name) > 64 || strings.ContainsAny(name, " \t\n"):
			return Filter{}, badSpec(spec, "neither a network such as 10.0.0.0/24 nor an interface")
		case err == nil && not:
			return Filter{}, badSpec(spec, "only the name of an interface can follow !")
		case err == nil:
			f.nets = append(f.nets, p.Masked())
		case strings.Contains(name, "/"):
			return Filter{}, badSpec(spec, "not a network such as 10.0.0.0/24")
		case not:
			f.excluded = append(f.excluded, name)
		default:
			f.names = append(f.names, name)
		}
	}
	return f, nil
}

func badSpec(spec, reason string) error {
	return fmt.Errorf("cannot use network %q: %s", spec, reason)
}

// localPrefixes are prefixes of the names of interfaces that connect only containers and virtual
// machines of this host. Their addresses are often the same on every host.
var localPrefixes = []string{
	"docker", "br-", "veth", "virbr", "vnet", "cni", "flannel", "cali", "cilium", "lxc", "lxdbr",
	"podman", "nerdctl", "weave", "kube-", "dummy",
}

// Usable returns the interfaces, with those of their addresses that other hosts can reach:
// interfaces that are up, not loopback and not local to this host (docker0 and similar). A Filter
// that includes a local interface or its network overrides that. Link-local addresses are used only
// if an interface has no other address.
func Usable(all []Interface, f Filter) []Interface {
	var list []Interface
	for _, i := range all {
		if !i.Up || i.Loopback {
			continue
		}
		isPrefix := func(prefix string) bool { return strings.HasPrefix(i.Name, prefix) }
		i.Addrs = f.addresses(i, !slices.ContainsFunc(localPrefixes, isPrefix))
		if len(i.Addrs) > 0 {
			list = append(list, i)
		}
	}
	return list
}

// addresses returns the addresses of one interface that the filter includes. byDefault applies if
// the filter includes neither networks nor interfaces.
func (f Filter) addresses(i Interface, byDefault bool) []netip.Prefix {
	if slices.Contains(f.excluded, i.Name) {
		return nil
	}
	var global, linkLocal []netip.Prefix
	for _, p := range i.Addrs {
		switch {
		case !f.includes(i.Name, p.Addr(), byDefault):
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

func (f Filter) includes(name string, a netip.Addr, byDefault bool) bool {
	if len(f.names)+len(f.nets) == 0 {
		return byDefault
	}
	contains := func(n netip.Prefix) bool { return n.Contains(a.Unmap()) }
	return slices.Contains(f.names, name) || slices.ContainsFunc(f.nets, contains)
}
