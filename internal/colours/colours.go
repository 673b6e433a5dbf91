// Package colours removes the colours that programs print around their messages, and the other
// escape sequences with which they control a terminal. It needs no regular expressions: runners
// use it, which begin before package regexp is initialised.
package colours

import "strings"

// Removed is a text without colours.
func Removed(text string) string {
	return without(text, func(sequence string) bool {
		inside, is := strings.CutPrefix(sequence, "\x1b[")
		return is && strings.TrimLeft(inside, "0123456789;:") == "m"
	})
}

// WithoutEscapes is a text without escape sequences, such as those of progress bars.
func WithoutEscapes(text string) string {
	return without(text, func(string) bool { return true })
}

// without is a text without the escape sequences for which remove returns true.
func without(text string, remove func(sequence string) bool) string {
	var b strings.Builder
	for {
		before, _, found := strings.Cut(text, "\x1b")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		text = text[len(before):]
		n := max(1, sequenceLength(text))
		if n == 1 || !remove(text[:n]) {
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
}

// sequenceLength is the length of the escape sequence at the beginning of a text, 0 if it is not a
// complete one: ESC [, which colours text, moves the cursor and sets modes; ESC ], which names a
// window or a link; or a short one.
func sequenceLength(text string) int {
	kind, rest := text[:min(2, len(text))], text[min(2, len(text)):]
	switch kind {
	case "\x1b[":
		rest = skip(skip(rest, '0', '?'), ' ', '/')
		return lengthBefore(text, rest, '@', '~')
	case "\x1b]":
		end := strings.IndexAny(rest, "\x07\x1b")
		switch {
		case end >= 0 && rest[end] == '\x07':
			return len(kind) + end + 1
		case end >= 0 && strings.HasPrefix(rest[end:], "\x1b\\"):
			return len(kind) + end + 2
		}
		return 0
	}
	rest = skip(text[1:], ' ', '/')
	return max(lengthBefore(text, rest, '0', 'Z'), lengthBefore(text, rest, '^', '~'))
}

// skip is a text without the bytes from first to last at its beginning.
func skip(text string, first, last byte) string {
	for len(text) > 0 && first <= text[0] && text[0] <= last {
		text = text[1:]
	}
	return text
}

// lengthBefore is the length of a sequence that ends with the first byte of rest, the end of text;
// 0 if this byte is not from first to last.
func lengthBefore(text, rest string, first, last byte) int {
	if len(rest) == 0 || rest[0] < first || rest[0] > last {
		return 0
	}
	return len(text) - len(rest) + 1
}
