// Package nodelist writes names of nodes.
package nodelist

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Short is a list in which names that end in consecutive numbers are a range: "node1-node62,
// node64".
func Short(names []string) string {
	var parts []string
	for i := 0; i < len(names); {
		last := i
		for last+1 < len(names) && names[last+1] == successor(names[last]) {
			last++
		}
		switch {
		case last == i+1:
			parts = append(parts, names[i], names[last])
		case last > i:
			parts = append(parts, names[i]+"-"+names[last])
		default:
			parts = append(parts, names[i])
		}
		i = last + 1
	}
	return strings.Join(slices.Clip(parts), ", ")
}

// successor is the name with the number at its end, or before its domain, incremented; "" if it has
// none.
func successor(name string) string {
	name, domain, dot := strings.Cut(name, ".")
	if strings.Trim(name+domain, "0123456789.") == "" { // an address
		name, domain, dot = name+"."+domain, "", false
	}
	prefix := strings.TrimRight(name, "0123456789")
	digits := name[len(prefix):]
	n, err := strconv.Atoi(digits)
	if err != nil {
		return ""
	}
	next := fmt.Sprintf("%s%0*d", prefix, len(digits), n+1)
	if dot {
		next += "." + domain
	}
	return next
}
