// Package plural writes numbers of things.
package plural

import "fmt"

// Of is "1 node" or "2 nodes".
func Of(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
