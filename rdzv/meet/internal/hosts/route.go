package hosts

import (
	"bufio"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// defaultRoutes reads /proc/net/route and returns the interfaces of the default routes in the
// kernel's order.
func defaultRoutes(r io.Reader) []string {
	var names []string
	for lines := bufio.NewScanner(r); lines.Scan(); {
		// Iface Destination Gateway Flags RefCnt Use Metric Mask ...
		words := strings.Fields(lines.Text())
		if len(words) >= 8 && words[1] == "00000000" && words[7] == "00000000" {
			names = append(names, words[0])
		}
	}
	return names
}

// ByRoute moves the interfaces with a default route of IPv4 to the front of the list, because other
// hosts are most likely to reach them. It does nothing if proc is nil or has no table of routes.
func ByRoute(proc fs.FS, list []Interface) {
	if proc == nil {
		return
	}
	f, err := proc.Open("self/net/route")
	if err != nil {
		return
	}
	defer f.Close()
	routes := defaultRoutes(f)
	slices.SortStableFunc(list, func(a, b Interface) int {
		return position(routes, a.Name) - position(routes, b.Name)
	})
}

func position(routes []string, name string) int {
	if i := slices.Index(routes, name); i >= 0 {
		return i
	}
	return len(routes)
}
