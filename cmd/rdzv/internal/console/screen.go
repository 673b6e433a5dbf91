package console

import (
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Screen describes the abilities of a stream beyond plain lines. The zero value is not a terminal:
// plain lines of any length.
type Screen struct {
	terminal bool // with or without the abilities below
	rewrites bool // a line can be erased and written again
	colour   bool // and be coloured
	// size is how many rows and columns it has now, 0 if unknown.
	size func() (rows, columns int)
}

// Setting is what the environment says of the terminals of a process.
type Setting struct {
	Term    string // the variable TERM
	NoColor bool   // NO_COLOR is set
	// Relayed says that a launcher may have made the terminal, of which it copies the output
	// elsewhere: Open MPI gives each task a pseudoterminal as stdout.
	Relayed bool
}

// SettingOf reads it.
func SettingOf(env map[string]string) Setting {
	return Setting{
		Term: env["TERM"], NoColor: env["NO_COLOR"] != "",
		Relayed: env["OMPI_COMM_WORLD_RANK"] != "" || env["PMIX_RANK"] != "",
	}
}

// ScreenOf inspects a stream. It follows NO_COLOR (no-color.org), TERM=dumb, and TERM=unknown,
// which sudo sets where TERM is not set. Neither has colours (terminfo). A terminal that a launcher
// has made has no size, unlike that of a person, and counts as a file.
func ScreenOf(f *os.File, s Setting) Screen {
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return Screen{}
	}
	size := func() (rows, columns int) {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
			return int(size.Row), int(size.Col)
		}
		return 0, 0
	}
	if rows, columns := size(); s.Relayed && rows == 0 && columns == 0 {
		return Screen{}
	}
	capable := s.Term != "" && s.Term != "dumb" && s.Term != "unknown"
	return Screen{terminal: true, rewrites: capable, colour: capable && !s.NoColor, size: size}
}

// Coloured is a screen for tests that shows colours.
func Coloured() Screen { return Screen{terminal: true, rewrites: true, colour: true} }

// width is how many columns it has now, 0 if unknown.
func (s Screen) width() int {
	if s.size == nil {
		return 0
	}
	_, columns := s.size()
	return columns
}

// erase moves the cursor to the beginning of the line and clears it.
const erase = "\r\x1b[K"

// defaultWidth is assumed if a terminal's width is unknown.
const defaultWidth = 80

// fit shortens a line to the screen's width: a line that wraps cannot be erased. The time that it
// has at its end, " (5s)", remains.
func (s Screen) fit(line string) string {
	width := s.width()
	if width == 0 {
		width = defaultWidth
	}
	runes := []rune(line)
	if len(runes) < width { // the last column stays free, some terminals wrap there
		return line
	}
	var end []rune
	if i := strings.LastIndex(line, " ("); i >= 0 && strings.HasSuffix(line, "s)") {
		end = []rune(line[i:])
	}
	if len(end) > width/2 {
		end = nil
	}
	runes = runes[:len(runes)-len(end)]
	return string(runes[:max(0, width-2-len(end))]) + "…" + string(end)
}

// fold divides a text between words into lines of this screen. The first line begins after some
// columns, the others after as many as "rdzv:   " has. Lines of a report are indented; they and
// commands are not divided: they can be copied.
func (s Screen) fold(text string, after int) (lines []string) {
	width := s.width()
	if width == 0 || after+utf8.RuneCountInString(text) <= width || strings.HasPrefix(text, "  ") ||
		strings.Contains(text, "rdzv exec ") {
		return []string{text}
	}
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		if line != "" && after+utf8.RuneCountInString(line+" "+word) > width {
			lines, line, after = append(lines, line), "", len("rdzv:   ")
		} else if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// Colours, as parameters of the escape sequence that selects them.
const (
	Red     = "31"
	Green   = "32"
	Magenta = "35" // yellow is hard to read on a light background
)

func (s Screen) coloured(colour, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[m"
}

// PageWidth is the width of a text that is not for a terminal, and the largest one: longer lines
// are hard to read.
const PageWidth = 100

// Width is how wide a text can be for this screen, within limits.
func (s Screen) Width() int {
	if width := s.width(); width > 0 {
		return max(60, min(width, PageWidth))
	}
	return PageWidth
}
