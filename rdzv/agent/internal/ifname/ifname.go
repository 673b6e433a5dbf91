// Package ifname checks the variables that choose the network interfaces of gloo, TensorPipe and
// NCCL. With a name that no interface has, these fail when they connect, and do not all say why.
package ifname

import (
	"fmt"
	"slices"
	"strings"

	"rdzv/envmap"
	"rdzv/internal/interfaces"
)

// A Fault is a variable that names no interface of this node, or one that must not be used.
type Fault struct {
	Variable, Value string
	Text, Hint      string // what is wrong, and what to do about it
}

// Networks are the addresses of this node to which the user has restricted the job, and the words
// of the restriction; the zero value is none.
type Networks struct {
	Allowed []string
	Words   string
}

// Faults are those of a worker with this environment on this node; none if its interfaces are not
// known.
func Faults(environ []string, n Networks) []Fault {
	all, err := interfaces.List()
	if err != nil {
		return nil
	}
	return faultsAmong(all, envmap.ParseEnv(environ), n)
}

// faultsAmong are the faults on a node with these interfaces.
func faultsAmong(all []interfaces.Interface, env envmap.Env, n Networks) (faults []Fault) {
	all = slices.DeleteFunc(slices.Clone(all), func(i interfaces.Interface) bool {
		return !i.Up || len(i.Addrs) == 0
	})
	for _, name := range []string{"GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"} {
		value := env[name]
		if value == "" {
			continue
		}
		if text, hint := check(name, value, all, n); text != "" {
			faults = append(faults, Fault{name, value, text, hint})
		}
	}
	return faults
}

func check(name, value string, all []interfaces.Interface, n Networks) (text, hint string) {
	selected := chosen(value, name == "NCCL_SOCKET_IFNAME", all)
	mayUse := func(i interfaces.Interface) bool { return slices.ContainsFunc(n.Allowed, i.Has) }
	switch {
	case len(selected) == 0:
		return fmt.Sprintf("%s=%s: no network interface with an address has that name", name, value),
			"unset it: rdzv exec sets it in jobs of several nodes; there are " + interfaces.Names(all)
	case len(n.Allowed) > 0 && !slices.ContainsFunc(selected, mayUse):
		return fmt.Sprintf("%s=%s is kept, although --net %s excludes %s", name, value,
				n.Words, interfaces.Names(selected)),
			"unset it: rdzv exec sets it to an interface that --net allows"
	}
	return "", ""
}

// chosen are the interfaces that a value selects. It is a list of names. Those of NCCL are prefixes
// of names, unless the list begins with "="; after "^" they are excluded; a port may follow each.
func chosen(value string, nccl bool, all []interfaces.Interface) (list []interfaces.Interface) {
	excluded, exact := false, true
	if nccl {
		value, excluded = strings.CutPrefix(value, "^")
		value, exact = strings.CutPrefix(value, "=")
	}
	matches := func(i interfaces.Interface) bool {
		return slices.ContainsFunc(strings.Split(value, ","), func(name string) bool {
			if nccl {
				name, _, _ = strings.Cut(name, ":")
			}
			return name == i.Name || !exact && strings.HasPrefix(i.Name, name)
		})
	}
	for _, i := range all {
		if matches(i) != excluded {
			list = append(list, i)
		}
	}
	return list
}
