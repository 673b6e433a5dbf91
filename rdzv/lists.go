package rdzv

import (
	"fmt"
	"strings"
)

// maxShown is how many problems are told, and how many agents named, before the rest
// is only counted.
const maxShown = 8

// cut returns the first maxShown of all, and how many others there are.
func cut[T any](all []T) (shown []T, more int) {
	shown = all[:min(len(all), maxShown)]
	return shown, len(all) - len(shown)
}

// list names things, and counts those that are left out.
func list[T any](things []T, more int) string {
	names := make([]string, 0, len(things))
	for _, t := range things {
		names = append(names, fmt.Sprint(t))
	}
	s := strings.Join(names, ", ")
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
