// Package tables lays out what commands print to stdout for people: the ranks of jobs, where they
// are, the nodes of a job, and the values of env --explain.
package tables

import (
	"strings"
	"unicode/utf8"
)

// page is a text for people in lines of at most so many columns, if possible.
type page struct {
	strings.Builder
	width int
}

// writeFolded writes a text in lines. Later ones are indented.
func writeFolded(b *page, prefix, text string) {
	b.WriteString(prefix + strings.Join(folded(text, b.width-4), "\n    ") + "\n")
}

// folded splits a text into lines of at most width characters, between words: a path remains whole.
func folded(text string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, word)
		default:
			*last += " " + word
		}
	}
	return lines
}
