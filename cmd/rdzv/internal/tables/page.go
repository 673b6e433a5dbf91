// Package tables lays out what commands print to stdout for people: the ranks of jobs, where they
// are, the nodes of a job, and the values of env --explain.
package tables

import (
	"os/user"
	"strconv"
	"strings"
	"unicode/utf8"

	"rdzv/cmd/rdzv/internal/console"
)

// page is a text for people in lines of at most so many columns, if possible.
type page struct {
	strings.Builder
	to    console.Destination
	width int
}

func newPage(to console.Destination) *page { return &page{to: to, width: to.Width()} }

// part is a part of a text in a colour, which is for what is to be looked at.
type part struct {
	colour console.Colour
	text   string
}

// folded writes a text in lines, between whose words it is divided: a path remains whole. All lines
// but the first one are indented.
func (p *page) folded(before string, parts ...part) {
	p.WriteString(before)
	columns := 0 // of the line so far
	for _, part := range parts {
		run := "" // of words of this part in one line
		for word := range strings.FieldsSeq(part.text) {
			switch n := utf8.RuneCountInString(word); {
			case columns > 0 && columns+1+n > p.width-4:
				p.WriteString(p.to.Paint(part.colour, run) + "\n    ")
				run, columns = word, n
			case run != "":
				run += " " + word
				columns += 1 + n
			case columns > 0:
				p.WriteString(" ")
				run = word
				columns += 1 + n
			default:
				run, columns = word, n
			}
		}
		p.WriteString(p.to.Paint(part.colour, run))
	}
	p.WriteString("\n")
}

// plain writes a text without colours in lines.
func (p *page) plain(before, text string) { p.folded(before, part{text: text}) }

// pad is a text that fills a column.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// UserName is the name of a user, or its number if it has none.
func UserName(uid int) string {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}
