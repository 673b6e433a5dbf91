package console

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The columns of a table. A source stands behind its value where both fit on a
// line, else below it.
const (
	whatWidth  = 12
	valueWidth = 11
	lineWidth  = 100 // where there is no terminal that has another
)

// Row is one line of a table: what, its value, and where it came from.
type Row struct {
	What  string `json:"what"`
	Value string `json:"value"`
	From  string `json:"from,omitempty"` // the variable it came from, or why
}

// Table lays rows out in three columns. width is the terminal's, at which the last
// column is broken between words; 0 breaks nothing.
func Table(rows []Row, width int) string {
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(r.layout(width) + "\n")
	}
	return b.String()
}

func (r Row) layout(width int) string {
	what, value, from := pad(harmless(r.What), whatWidth), harmless(r.Value), harmless(r.From)
	switch long := utf8.RuneCountInString(value) >= valueWidth; {
	case from == "":
		return what + broken(value, whatWidth, width)
	case value == "":
		return what + broken(from, whatWidth, width)
	case !long:
		return what + pad(value, valueWidth) + broken(from, whatWidth+valueWidth, width)
	case utf8.RuneCountInString(what+value+from)+2 < cmp.Or(width, lineWidth):
		return what + value + "  " + from
	}
	below := strings.Repeat(" ", whatWidth+2)
	return what + broken(value, whatWidth, width) + "\n" + below + broken(from, len(below), width)
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(1, width-utf8.RuneCountInString(text)))
}

// broken breaks text that begins at column indent so that it ends before width.
func broken(text string, indent, width int) string {
	if width-indent < 20 { // too narrow to be better than the terminal's own breaks
		return text
	}
	var b strings.Builder
	column := indent
	for i, word := range strings.Split(text, " ") {
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+length >= width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += length
	}
	return b.String()
}

// harmless shows control characters as Go writes them: a value from the
// environment must not draw on the terminal.
func harmless(text string) string {
	if !strings.ContainsFunc(text, unicode.IsControl) && utf8.ValidString(text) {
		return text
	}
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
