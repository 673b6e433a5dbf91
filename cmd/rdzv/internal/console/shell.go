package console

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// shellLine is a command as one line for a shell.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellWord(word)
	}
	return strings.Join(quoted, " ")
}

// shellWord quotes a word for a shell if that is necessary. Control characters are escaped as in
// bash, ksh, zsh and POSIX 2024, so that they neither begin a new line nor control the terminal.
func shellWord(word string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("%+,-./:=@_", r)
	}
	switch {
	case strings.ContainsFunc(word, unicode.IsControl) || !utf8.ValidString(word):
		escaped := strings.ReplaceAll(visible(word), "'", `\'`)
		return "$'" + escaped + "'"
	case word == "" || strings.ContainsFunc(word, special):
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}
