package postmortem

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"rdzv/internal/colours"
)

// How many lines of a worker's stderr the report repeats.
const (
	tailLines      = 20
	tracebackLines = 60
)

// lastLines returns the end of a worker's stderr that shows why it failed: from the last traceback
// on, else the last lines. message is the line of the traceback that names the exception, ""
// without a traceback. It is guessed if it is what a library printed before it called abort(3).
func lastLines(stderr []byte) (lines []string, message string, guessed bool) {
	text := strings.ToValidUTF8(string(bytes.TrimRight(stderr, "\n")), "\uFFFD")
	if text == "" {
		return nil, "", false
	}
	lines = slices.DeleteFunc(withoutRecording(strings.Split(text, "\n")), listsModules)
	most := tailLines
	if at := lastTraceback(lines); at >= 0 {
		message = strings.TrimSpace(printable(exceptionLine(lines[at:])))
		removePrefix(lines, at)
		if before := abortReason(lines, at); before >= 0 {
			message, guessed, at = strings.TrimSpace(printable(lines[before])), true, before
		}
		lines, most = lines[chainStart(lines, at):], tracebackLines
	} else {
		lines = lines[max(0, len(lines)-tailLines):]
	}
	if cut := len(lines) - most; cut > 0 { // the first and the last lines matter most
		lines = append(append(slices.Clone(lines[:most/3]), "  ..."),
			lines[len(lines)-most+most/3+1:]...)
	}
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return lines, message, guessed
}

// listsModules tells whether a line is the list of extension modules that Python's faulthandler
// prints below the stack, with torch hundreds of them, which says nothing about the failure.
func listsModules(line string) bool {
	return strings.Contains(line, "Extension modules: ") && strings.Contains(line, "(total: ")
}

// lastText is the last line that says what is wrong, or else the last one that is not empty. The
// text of a launcher that ends with a line of dashes begins after another one: then it is its first
// sentence.
func lastText(stderr []byte) string {
	text := strings.ToValidUTF8(string(stderr), "\uFFFD")
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimSpace(printable(line)))
	}
	isText := func(line string) bool { return line != "" }
	last := lastIndex(lines, isText)
	if last < 0 {
		return ""
	}
	if rule := lines[last]; isRule(rule) {
		begin := lastIndex(lines[:last], func(line string) bool { return line == rule })
		paragraph := slices.DeleteFunc(slices.Clone(lines[begin+1:last]), isRule)
		if end := slices.Index(paragraph, ""); end >= 0 {
			paragraph = paragraph[:end]
		}
		if begin >= 0 && len(paragraph) > 0 {
			return strings.Join(paragraph, " ")
		}
	}
	says := func(line string) bool {
		return line != "" && !isRule(line) && !advises().MatchString(line)
	}
	if i := lastIndex(lines, says); i >= 0 {
		last = i
	}
	return lines[last]
}

// isRule tells whether a line that is not empty has neither letters nor digits.
func isRule(line string) bool {
	return line != "" && !strings.ContainsFunc(line, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	})
}

// advises matches what programs print after what is wrong: how they are called, where to read that,
// or a hint of rdzv. It is made when it is needed.
var advises = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^rdzv: hint: |^(\S+: )?usage:|^(\S+: )?use -|` +
		`^(try|see|run|type|use)\b.*(--help|-h\b|\bfor (more|usage|help))|^for (more|usage|help)\b`)
})

// printable keeps the text after the last carriage return, as a terminal would, and removes colours
// and control characters, so that a report cannot control the terminal.
func printable(line string) string {
	if i := strings.LastIndexByte(strings.TrimRight(line, "\r"), '\r'); i >= 0 {
		line = line[i+1:]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return -1
		}
		return r
	}, colours.Removed(line))
}
