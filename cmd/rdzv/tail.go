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
