package postmortem

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"rdzv/internal/colours"
)

// How many lines of a worker's stderr the report repeats.
const (
	tailLines      = 20
	tracebackLines = 60
)

// lastLines returns the end of a worker's stderr that shows why it failed: the traceback of the
// exception that ended it, else the last lines. message is the line of the traceback that names the
// exception, or what a nested rdzv reports; "" without them. It is guessed if it is what a library
// printed before it called abort(3). A signal that kills the worker prints nothing: a traceback
// after which it has printed more is not the reason.
func lastLines(stderr []byte, killed bool) (lines []string, message string, guessed bool) {
	text := strings.ToValidUTF8(string(bytes.TrimRight(stderr, "\n")), "\uFFFD")
	text = colours.WithoutEscapes(text) // Python 3.13 colours tracebacks
	if text == "" {
		return nil, "", false
	}
	lines = slices.DeleteFunc(withoutRecording(strings.Split(text, "\n")), listsModules)
	at, end := decisive(lines)
	if nested := reported(lines); nested != "" {
		message = nested
		if at = tracebackOf(lines, nested); at >= 0 {
			end = len(lines)
		}
	} else if at >= 0 && killed && !startsDeath(lines[at]) && !near(lines[:end], at) {
		at = -1
	}
	if at < 0 {
		return printed(shortened(lines[max(0, len(lines)-tailLines):], tailLines)), message, false
	}
	lines = lines[:end]
	if message == "" {
		message = exceptionText(lines[at:])
	}
	removePrefix(lines, at)
	if before := abortReason(lines, at); before >= 0 {
		message, guessed, at = strings.TrimSpace(printable(lines[before])), true, before
	}
	return printed(shortened(lines[chainStart(lines, at):], tracebackLines)), message, guessed
}

// shortened are at most so many lines: the first and the last ones matter most.
func shortened(lines []string, most int) []string {
	if cut := len(lines) - most; cut > 0 {
		return slices.Concat(lines[:most/3], []string{"  ..."}, lines[len(lines)-most+most/3+1:])
	}
	return lines
}

func printed(lines []string) []string {
	lines = slices.Clone(lines)
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return lines
}

// listsModules tells whether a line is the list of extension modules that Python's faulthandler
// prints below the stack, with torch hundreds of them, which says nothing about the failure.
func listsModules(line string) bool {
	return strings.Contains(line, "Extension modules: ") && strings.Contains(line, "(total: ")
}

// lastText is the last line that says what is wrong, or else the last one that is not empty. The
// text of a launcher that ends with a line of dashes begins after another one: then it is its
// first sentence.
func lastText(stderr []byte) string {
	text := colours.WithoutEscapes(strings.ToValidUTF8(string(stderr), "\uFFFD"))
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimRightFunc(printable(line), unicode.IsSpace))
	}
	lines = unfolded(lines)
	last := lastIndex(lines, func(line string) bool { return line != "" })
	if last < 0 {
		return ""
	}
	if sentence := lastParagraph(lines[:last+1]); sentence != "" {
		return sentence
	}
	// Indented lines are details of the line above.
	for _, says := range []func(string) bool{saysWhy, func(line string) bool {
		return saysWhy(strings.TrimSpace(line))
	}} {
		if i := lastIndex(lines, says); i >= 0 {
			return withPlace(withoutTime(strings.TrimSpace(lines[i])), lines[:i])
		}
	}
	return strings.TrimSpace(lines[last])
}

// lastParagraph is the first sentence of what is between two lines of dashes at the end; "" if
// there are none.
func lastParagraph(lines []string) string {
	rule, before := lines[len(lines)-1], lines[:len(lines)-1]
	begin := lastIndex(before, func(line string) bool { return line == rule })
	if !isRule(rule) || begin < 0 {
		return ""
	}
	paragraph := slices.DeleteFunc(slices.Clone(before[begin+1:]), isRule)
	if end := slices.Index(paragraph, ""); end >= 0 {
		paragraph = paragraph[:end]
	}
	for i := range paragraph {
		paragraph[i] = strings.TrimSpace(paragraph[i])
	}
	return strings.Join(paragraph, " ")
}

// isRule tells whether a line that is not empty has neither letters nor digits.
func isRule(line string) bool {
	return line != "" && !strings.ContainsFunc(line, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	})
}

// printable keeps the text after the last carriage return, as a terminal would, and removes escape
// sequences and control characters, so that a report cannot control the terminal.
func printable(line string) string {
	if i := strings.LastIndexByte(strings.TrimRight(line, "\r"), '\r'); i >= 0 {
		line = line[i+1:]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return -1
		}
		return r
	}, colours.WithoutEscapes(line))
}
