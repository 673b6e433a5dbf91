// Package colours removes the colours that programs print around their messages.
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
