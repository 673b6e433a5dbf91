package console

import (
	"os"
	"os/user"
	"regexp"
	"strconv"
)

// Screen is what a stream can show beyond plain lines.
type Screen struct{ screen }

// ScreenOf inspects a stream. It follows NO_COLOR (no-color.org), TERM=dumb and TERM=unknown.
func ScreenOf(f *os.File, term string, noColor bool) Screen {
	return Screen{screenOf(f, term, noColor)}
}

// Rewrites tells whether what was written can be erased.
func (s Screen) Rewrites() bool { return s.rewrites }

// ClearScreen erases a terminal and moves the cursor to its first line.
const ClearScreen = "\x1b[H\x1b[2J\x1b[3J"

// A Mark is a part of a table that is coloured: what is to be looked at.
type Mark struct {
	part   string // a regular expression, whose first group is meant; most commands paint nothing
	colour string
}

// The marks of each table. A table is made without colours, because they would count in the widths
// of its columns.
var (
	CheckMarks = []Mark{
		{`(?m)^(!) `, red}, {`(?m)^(\*) `, yellow},
		{`(?m)^(error:|not ok:)`, red},
		{`(?m)^(warning:|    hint:)`, yellow},
		{`(?m)^(ok)[:,] `, green},
	}
	StatusMarks = []Mark{
		{` (blocked|stopped|no answer|SIG[A-Z0-9]+|exit [1-9]\d*) `, red},
		{`(?m)^(.* (?:has|have) not reached init_process_group)$`, yellow},
		{`(?m)^(.* does not listen on MASTER_PORT yet.*)$`, yellow},
	}
	StacksMarks = []Mark{{`(?m)^job .*, but not (.*)$`, yellow}}
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
