// Package shell quotes commands for a shell.
package shell

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line is a command as one line that a shell reads as the same words.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}

// quote quotes a word if that is necessary. Control characters are escaped as in bash, ksh, zsh and
// POSIX 2024, so that they neither begin a new line nor control the terminal.
func quote(word string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("%+,-./:=@_", r)
	}
	switch {
	case strings.ContainsFunc(word, unicode.IsControl) || !utf8.ValidString(word):
		escaped := strconv.Quote(word)
		escaped = strings.ReplaceAll(escaped[1:len(escaped)-1], `\"`, `"`)
		return "$'" + strings.ReplaceAll(escaped, "'", `\'`) + "'"
	case word == "" || strings.ContainsFunc(word, special):
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

// pathWidth is how much of a PATH a message shows.
const pathWidth = 50

// Path is a PATH for a message: quoted, and its first directories if it is long, which those of an
// environment are.
func Path(dirs string) string {
	if len(dirs) > pathWidth {
		end := strings.LastIndex(dirs[:pathWidth], ":")
		dirs = dirs[:max(end, 0)] + ":..."
	}
	return strconv.Quote(dirs)
}
