package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The columns of a table. A value that is wider pushes its source to the next line.
const (
	whatWidth  = 12
	valueWidth = 10
)

// table lays rows out in three columns. width is the terminal's, at which the last
// column is broken between words; 0 breaks nothing.
func table(rows []row, width int) string {
	var b strings.Builder
	for _, r := range rows {
		value, from := harmless(r.Value), harmless(r.From)
		indent := whatWidth + valueWidth + 1
		line := pad(harmless(r.What), whatWidth)
		switch {
		case value == "":
			indent = whatWidth
		case utf8.RuneCountInString(value) > valueWidth:
			b.WriteString(line + broken(value, whatWidth, width) + "\n")
			line = strings.Repeat(" ", whatWidth+2)
			indent = whatWidth + 2
		default:
			line += pad(value, valueWidth+1)
		}
		if from != "" {
			line += broken(from, indent, width)
		}
		if line = strings.TrimRight(line, " "); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
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
