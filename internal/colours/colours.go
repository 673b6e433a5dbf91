// Package colours removes the colours that programs print around their messages, and the other
// escape sequences with which they control a terminal.
package colours

import (
	"regexp"
	"strings"
	"sync"
)

// sequences are the escape sequences that select colours. They are compiled when they are needed,
// not in each process of rdzv.
var sequences = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b\\[[0-9;:]*m")
})

// Removed is a text without colours.
func Removed(text string) string {
	if !strings.Contains(text, "\x1b[") {
		return text
	}
	return sequences().ReplaceAllString(text, "")
}

// controls are escape sequences: those that begin with ESC [, which colour text, move the cursor
// and set modes, those that name a window or a link, and short ones.
var controls = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|` +
		`\][^\x07\x1b]*(?:\x07|\x1b\\)|` +
		`[ -/]*[0-Z^-~])`)
})

// WithoutEscapes is a text without escape sequences, such as those of progress bars.
func WithoutEscapes(text string) string {
	if !strings.Contains(text, "\x1b") {
		return text
	}
	return controls().ReplaceAllString(text, "")
}
