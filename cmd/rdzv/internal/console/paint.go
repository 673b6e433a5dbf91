package console

import (
	"fmt"
	"os/user"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"rdzv/internal/plural"
)

// Rewrites tells whether what was written can be erased.
func (s Screen) Rewrites() bool { return s.rewrites }

// InPlace is a text that replaces what a terminal shows, from its first line.
func InPlace(text string) string {
	return "\x1b[H" + strings.ReplaceAll(text, "\n", "\x1b[K\n") + "\x1b[J"
}

// Cut is a text without the lines that a terminal does not show if it begins at the first one and
// so many others follow, of which the last one is a prompt.
func (s Screen) Cut(text string, others int) string {
	rows, width := s.size()
	if rows == 0 || width == 0 {
		return text
	}
	free := rows - others
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		free -= max(1, (utf8.RuneCountInString(line)+width-1)/width)
		if free < 0 || free == 0 && i+1 < len(lines) {
			return strings.Join(lines[:max(0, i)], "") +
				fmt.Sprintf("... and %s, for which this terminal is too small\n",
					plural.Of(len(lines)-i, "more line"))
		}
	}
	return text
}

// A Mark is a part of a table that is coloured: what is to be looked at.
type Mark struct {
	Part   string // a regular expression, whose first group is meant; most commands paint nothing
	Colour string
}

// Paint colours the marks of a table, if the screen has colours.
func (s Screen) Paint(table string, marks []Mark) string {
	if !s.colour {
		return table
	}
	for _, m := range marks {
		painted, from := "", 0
		for _, at := range regexp.MustCompile(m.Part).FindAllStringSubmatchIndex(table, -1) {
			painted += table[from:at[2]] + s.coloured(m.Colour, table[at[2]:at[3]])
			from = at[3]
		}
		table = painted + table[from:]
	}
	return table
}

// UserName is the name of a user, or its number if it has none.
func UserName(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
