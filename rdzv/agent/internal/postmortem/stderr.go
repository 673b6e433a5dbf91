package postmortem

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
)

// What of a worker's standard error the report repeats.
const (
	tailLines      = 20
	tracebackLines = 60
)

// lastLines returns the end of a worker's standard error that shows why it failed:
// from the last traceback on, else the last lines. The message is the line of the
// traceback that names the exception, "" without a traceback.
func lastLines(stderr []byte) (lines []string, message string) {
	text := strings.ToValidUTF8(string(bytes.TrimRight(stderr, "\n")), "\uFFFD")
	if text == "" {
		return nil, ""
	}
	lines = withoutRecording(strings.Split(text, "\n"))
	most := tailLines
	if at := lastTraceback(lines); at >= 0 {
		message = strings.TrimSpace(printable(exceptionLine(lines[at:])))
		removePrefix(lines, at)
		lines, most = lines[chainStart(lines, at):], tracebackLines
	} else {
		lines = lines[max(0, len(lines)-tailLines):]
	}
	if cut := len(lines) - most; cut > 0 { // the first and the last lines tell the most
		lines = append(append(slices.Clone(lines[:most/3]), "  ..."), lines[len(lines)-most+most/3+1:]...)
	}
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return lines, message
}

// printable keeps what the last carriage return left on the line, as a terminal
// would, and drops control characters, so that a report cannot draw on the
// terminal it is printed to.
func printable(line string) string {
	if i := strings.LastIndexByte(strings.TrimRight(line, "\r"), '\r'); i >= 0 {
		line = line[i+1:]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return -1
		}
		return r
	}, line)
}
