package console

import (
	"fmt"
	"os"
	"os/user"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Screen is what a stream can show beyond plain lines.
type Screen struct{ screen }

// ScreenOf inspects a stream. It follows NO_COLOR (no-color.org), TERM=dumb and TERM=unknown.
func ScreenOf(f *os.File, term string, noColor bool) Screen {
	return Screen{screenOf(f, term, noColor)}
}

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
					Plural(len(lines)-i, "more line"))
		}
	}
	return text
}

// A Mark is a part of a table that is coloured: what is to be looked at.
type Mark struct {
	part   string // a regular expression, whose first group is meant; most commands paint nothing
	colour string
}

// The marks of each table. A table is made without colours, because they would count in the widths
// of its columns.
var (
	CheckMarks = []Mark{
		{`(?m)^(!) `, red}, {`(?m)^(\*) `, magenta},
		{`(?m)^(error:|not ok:)`, red},
		{`(?m)^(warning:|    hint:)`, magenta},
		{`(?m)^(ok)[:,] `, green},
	}
	StatusMarks = []Mark{
		{` (blocked|stopped|no answer|SIG[A-Z0-9]+|exit [1-9]\d*) `, red},
		{`(?m)^(.* (?:has|have) not reached init_process_group)$`, magenta},
		{`(?m)^(.* does not listen on MASTER_PORT yet.*)$`, magenta},
	}
	StacksMarks = []Mark{{`(?m)^job .*, but not (.*)$`, magenta}}
)

// Paint colours the marks of a table, if the screen has colours.
func (s Screen) Paint(table string, marks []Mark) string {
	if !s.colour {
		return table
	}
	for _, m := range marks {
		painted, from := "", 0
		for _, at := range regexp.MustCompile(m.part).FindAllStringSubmatchIndex(table, -1) {
			painted += table[from:at[2]] + s.coloured(m.colour, table[at[2]:at[3]])
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
