package main

import (
	"os"

	"golang.org/x/sys/unix"

	"rdzv/envmap"
)

// screen is what a stream can show beyond plain lines. The zero value is no
// terminal: plain lines of any length.
type screen struct {
	terminal bool       // a terminal, of whatever abilities
	renews   bool       // a line can be erased and written anew
	colour   bool       // and be coloured
	width    func() int // columns now, 0 where that is not known; nil is 0
}

// screenOf looks at a stream. NO_COLOR (no-color.org) and TERM=dumb are heeded.
func screenOf(f *os.File, env envmap.Env) screen {
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return screen{}
	}
	able := env["TERM"] != "" && env["TERM"] != "dumb"
	return screen{
		terminal: true, renews: able, colour: able && env["NO_COLOR"] == "",
		width: func() int { return columns(f) },
	}
}

// columns is the width of a terminal, 0 if it does not tell.
func columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// erase brings the cursor to the beginning of an empty line.
const erase = "\r\x1b[K"

// usualWidth is taken where a terminal does not tell its own.
const usualWidth = 80

// fit cuts a line so that it stays one line: a line that wraps cannot be erased.
func (s screen) fit(line string) string {
	width := usualWidth
	if s.width != nil && s.width() > 0 {
		width = s.width()
	}
	runes := []rune(line)
	if len(runes) < width { // the last column stays free, some terminals wrap there
		return line
	}
	return string(runes[:max(0, width-2)]) + "…"
}

func (s screen) red(text string) string    { return s.coloured("31", text) }
func (s screen) yellow(text string) string { return s.coloured("33", text) }

func (s screen) coloured(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[m"
}
