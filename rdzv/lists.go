package rdzv

import (
	"fmt"
	"strings"
)

// maxShown is how many elements of a list are shown; the others are counted.
const maxShown = 8

// cut returns the elements that are shown and the number of the others.
func cut[T any](all []T) (shown []T, more int) {
	shown = all[:min(len(all), maxShown)]
	return shown, len(all) - len(shown)
}

// list formats the result of cut: "a, b and 2 more".
func list[T any](shown []T, more int) string {
	texts := make([]string, len(shown))
	for i, e := range shown {
		texts[i] = fmt.Sprint(e)
	}
	s := strings.Join(texts, ", ")
	if more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
