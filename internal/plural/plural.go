// Package plural writes numbers of things.
package plural

import "strconv"

// Of is "1 node" or "2 nodes".
func Of(n int, noun string) string { return strconv.Itoa(n) + " " + Noun(n, noun) }

// Noun is "node" or "nodes".
func Noun(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
