package hosts

import (
	"bufio"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// defaultRoutes reads /proc/net/route and gives the interfaces with a route to everywhere, in the
// kernel's order.
func defaultRoutes(r io.Reader) []string {
	var names []string
	for lines := bufio.NewScanner(r); lines.Scan(); {
		words := strings.Fields(lines.Text()) // Iface Destination Gateway Flags RefCnt Use Metric Mask ...
		if len(words) >= 8 && words[1] == "00000000" && words[7] == "00000000" {
			names = append(names, words[0])
		}
	}
	return names
}

// ByRoute puts the interfaces first that lead to everywhere: most likely the others reach them too.
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
		return rank(routes, a.Name) - rank(routes, b.Name)
	})
}

func rank(routes []string, name string) int {
	if i := slices.Index(routes, name); i >= 0 {
		return i
	}
	return len(routes)
}
