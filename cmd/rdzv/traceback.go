package main

import (
	"slices"
	"strings"
)

// tracebacks are the first lines of what Python prints when it fails: an
// exception's traceback and faulthandler's dump of a fatal signal.
var tracebacks = []string{"Traceback (most recent call last):", "Fatal Python error: "}

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
