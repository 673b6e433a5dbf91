package hosts

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxNodes is how many names a list of nodes may stand for; more is taken for a mistake, or for
// malice.
const maxNodes = 1 << 16

// expandList expands each entry of a list; expand gives at most limit names of one entry, or the
// error bad.
func expandList(text string, bad error, expand func(entry string, limit int) ([]string, error)) (names []string, _ error) {
	for text != "" {
		entry, rest := splitEntry(text)
		text = rest
		some, err := expand(entry, maxNodes-len(names))
		if err != nil {
			return nil, err
		}
		names = append(names, some...)
	}
	if len(names) == 0 {
		return nil, bad
	}
	return names, nil
}

// splitEntry cuts at the first comma outside brackets.
func splitEntry(text string) (entry, rest string) {
	depth := 0
	for i, r := range text {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth <= 0:
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// numberRange reads "7" or "7-9".
func numberRange(text string) (first, last int, err error) {
	low, high, two := strings.Cut(text, "-")
	if !two {
		high = low
	}
	first, err1 := strconv.Atoi(low)
	last, err2 := strconv.Atoi(high)
	if err1 != nil || err2 != nil || first < 0 || last < first || last == math.MaxInt {
		return 0, 0, fmt.Errorf("not a range of numbers: %q", text)
	}
	return first, last, nil
}
