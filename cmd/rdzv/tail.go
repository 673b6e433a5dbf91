package main

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

// tracebacks are the first lines of what Python prints when it fails: an
// exception's traceback and faulthandler's dump of a fatal signal.
var tracebacks = []string{"Traceback (most recent call last):", "Fatal Python error: "}

// lastWords picks the end of a worker's standard error that tells why it failed:
// from the last traceback on, else the last lines.
func lastWords(stderr []byte) []string {
	text := strings.ToValidUTF8(string(bytes.TrimRight(stderr, "\n")), "\uFFFD")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	from, most := max(0, len(lines)-tailLines), tailLines
	for i, line := range slices.Backward(lines) {
		if startsTraceback(line) {
			from, most = i, tracebackLines
			if !chained(lines[:i]) {
				break
			}
		}
	}
	lines = lines[from:]
	if cut := len(lines) - most; cut > 0 { // the first and the last lines tell the most
		lines = append(append(slices.Clone(lines[:most/3]), "  ..."), lines[len(lines)-most+most/3+1:]...)
	}
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return lines
}

func startsTraceback(line string) bool {
	for _, t := range tracebacks {
		if strings.Contains(line, t) {
			return true
		}
	}
	return false
}

// chained tells whether the lines before a traceback say that it came of the one
// before: Python prints an exception's cause first.
func chained(before []string) bool {
	for _, line := range slices.Backward(before) {
		if strings.TrimSpace(line) != "" {
			return strings.HasPrefix(line, "During handling of the above exception") ||
				strings.HasPrefix(line, "The above exception was the direct cause")
		}
	}
	return false
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

// summaryLine is the one line of lastWords that names the failure: behind the last
// traceback the first line that is not indented. Empty where there is none.
func summaryLine(lines []string) string {
	last := len(lines) - 1
	for last >= 0 && !startsTraceback(lines[last]) {
		last--
	}
	if last < 0 {
		return ""
	}
	if strings.Contains(lines[last], tracebacks[1]) {
		return strings.TrimSpace(lines[last])
	}
	for _, line := range lines[last+1:] {
		if line != "" && line[0] != ' ' && line[0] != '\t' {
			return line
		}
	}
	return ""
}
