package console

import (
	"os"

	"golang.org/x/sys/unix"
)

// Screen is what a stream can show beyond plain lines. The zero value is not a terminal: plain
// lines of any length.
type Screen struct {
	terminal bool       // a terminal, of whatever abilities
	rewrites bool       // a line can be erased and written again
	colour   bool       // and be coloured
	width    func() int // columns now, 0 if unknown; nil is 0
}

// ScreenOf inspects a stream. It follows NO_COLOR (no-color.org) and TERM=dumb.
func ScreenOf(f *os.File, term string, noColor bool) Screen {
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return Screen{}
	}
	capable := term != "" && term != "dumb"
	width := func() int { return columns(f) }
	return Screen{terminal: true, rewrites: capable, colour: capable && !noColor, width: width}
}

// Width is the width of the terminal in columns, 0 if it is unknown or there is none.
func (s Screen) Width() int {
	if s.width == nil {
		return 0
	}
	return s.width()
}

// columns is the width of a terminal, 0 if it is unknown.
func columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// erase moves the cursor to the beginning of the line and clears it.
const erase = "\r\x1b[K"

// defaultWidth is assumed if a terminal's width is unknown.
const defaultWidth = 80

// fit shortens a line to the screen's width: a line that wraps cannot be erased.
func (s Screen) fit(line string) string {
	width := defaultWidth
	if s.Width() > 0 {
		width = s.Width()
	}
	runes := []rune(line)
	if len(runes) < width { // the last column stays free, some terminals wrap there
		return line
	}
	return string(runes[:max(0, width-2)]) + "…"
}

func (s Screen) red(text string) string    { return s.coloured("31", text) }
func (s Screen) yellow(text string) string { return s.coloured("33", text) }

func (s Screen) coloured(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[m"
}
