// Package visible makes text from outside safe for a terminal.
package visible

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"rdzv/internal/colours"
)

// Text makes all lines of a text safe for a terminal, without colours, which programs print around
// their messages.
func Text(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		whole := strings.TrimRight(line, "\n")
		b.WriteString(Line(colours.Removed(whole)) + line[len(whole):])
	}
	return b.String()
}

// Line makes a line that contains text from outside (environment, file names, host names, output
// of workers, messages of other agents) safe for a terminal: it shows all characters that are not
// printable as Go writes them, among them escape sequences and characters that change the direction
// of writing. Tabs remain.
func Line(line string) string {
	if printable(line) {
		return line
	}
	var b strings.Builder
	for text := line; text != ""; {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[0])|0x100, 16)[1:])
		case r == '\t' || strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}

func printable(line string) bool {
	for _, r := range line {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			return false
		}
	}
	return true
}
