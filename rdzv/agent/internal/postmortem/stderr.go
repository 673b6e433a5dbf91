package postmortem

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
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
	lines = withoutRecording(strings.Split(text, "\n"))
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

// lastText is the last line that is not empty.
func lastText(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if text := strings.TrimSpace(line); text != "" {
			return text
		}
	}
	return ""
}

// printable keeps the text after the last carriage return, as a terminal would, and removes control
// characters, so that a report cannot control the terminal.
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
