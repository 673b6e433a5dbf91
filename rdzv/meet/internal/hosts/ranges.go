package hosts

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxNodes is the maximum number of names in a list of hosts. A longer list is rejected as
// malformed.
const maxNodes = 1 << 16

var errHostlist = errors.New("malformed list of hosts")

// An expander returns the names that one entry of a list stands for, at most limit.
type expander func(entry string, limit int) ([]string, error)

// expandList expands each entry of a list whose entries are separated by commas.
func expandList(text string, expand expander) ([]string, error) {
	var names []string
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
		return nil, errHostlist
	}
	return names, nil
}

// splitEntry splits the text at the first comma outside brackets.
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

// numberRange parses "7" or "7-9".
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
