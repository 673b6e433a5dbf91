package console

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"rdzv/cmd/rdzv/internal/visible"
	"rdzv/internal/colours"
	"rdzv/internal/plural"
)

// Destination is where a stream of this process leads, and so how lines look there: their times,
// colours and ends, and which are replaced by the next one. The zero value is a log.
type Destination struct {
	kind Kind
	// size is how many rows and columns a terminal has now, 0 if unknown.
	size func() (rows, columns int)
}

// Kind is what reads a stream.
type Kind int

// Each terminal can do what those before it can.
const (
	Log        Kind = iota // a file, a pipe, or a launcher that collects lines: they have their time
	JSON                   // a program that reads JSON
	Plain                  // a terminal on which nothing can be erased (TERM=dumb)
	Uncoloured             // a terminal without colours (NO_COLOR)
	Coloured               // a terminal that shows colours
)

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

// DestinationOf inspects a stream. It follows NO_COLOR (no-color.org), TERM=dumb, and TERM=unknown,
// which sudo sets where TERM is not set. Neither has colours (terminfo). A terminal that a launcher
// has made has no size, unlike that of a person, and counts as a log.
func DestinationOf(f *os.File, s Setting) Destination {
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return Destination{}
	}
	size := func() (rows, columns int) {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
			return int(size.Row), int(size.Col)
		}
		return 0, 0
	}
	rows, columns := size()
	switch capable := s.Term != "" && s.Term != "dumb" && s.Term != "unknown"; {
	case s.Relayed && rows == 0 && columns == 0:
		return Destination{}
	case !capable:
		return Destination{Plain, size}
	case s.NoColor:
		return Destination{Uncoloured, size}
	}
	return Destination{Coloured, size}
}

// Of is a destination of a kind and, if it is a terminal, of a size, for tests.
func Of(kind Kind, rows, columns int) Destination {
	return Destination{kind, func() (int, int) { return rows, columns }}
}

// IsJSON tells whether a program reads it.
func (d Destination) IsJSON() bool { return d.kind == JSON }

// Rewrites tells whether what was written can be erased.
func (d Destination) Rewrites() bool { return d.kind >= Uncoloured }

// IsTerminal tells whether a person reads it as it is written.
func (d Destination) IsTerminal() bool { return d.kind >= Plain }

func (d Destination) screen() (rows, columns int) {
	if d.size == nil {
		return 0, 0
	}
	return d.size()
}

// columns is how many it has now, 0 if unknown.
func (d Destination) columns() int {
	_, columns := d.screen()
	return columns
}

// PageWidth is the width of a text that is not for a terminal, and the largest one: longer lines
// are hard to read.
const PageWidth = 100

// Width is how wide a text can be here, within limits.
func (d Destination) Width() int {
	if columns := d.columns(); columns > 0 {
		return max(60, min(columns, PageWidth))
	}
	return PageWidth
}

// Colour is a parameter of the escape sequence that selects it; "" selects none.
type Colour string

const (
	Red     Colour = "31"
	Green   Colour = "32"
	Magenta Colour = "35" // yellow is hard to read on a light background
)

// Paint is a text in a colour, where there are colours.
func (d Destination) Paint(c Colour, text string) string {
	if d.kind != Coloured || c == "" || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[m"
}

// Tags returns a function that makes what is before each line of a rank on a host: in a colour of
// the rank if both streams are terminals that show colours.
func Tags(stdout, stderr *os.File, s Setting) func(rank int, host string) string {
	d := DestinationOf(stdout, s)
	d.kind = min(d.kind, DestinationOf(stderr, s).kind)
	colours := []Colour{"36", "32", "35", "34"} // red is for errors
	return func(rank int, host string) string {
		return d.Paint(colours[rank%len(colours)], fmt.Sprintf("[%d %s]", rank, visible.Line(host))) + " "
	}
}

// stamp is the time before a line, in a form by which logs can be sorted. A terminal shows none.
func (d Destination) stamp(at time.Time) string {
	if d.IsTerminal() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05Z ")
}

// erase moves the cursor to the beginning of the line and clears it.
const erase = "\r\x1b[K"

// defaultWidth is assumed if a terminal's width is unknown.
const defaultWidth = 80

// fit is a line with what is to remain at its end, shortened to one row: a line that wraps cannot
// be erased. The last column stays free, because some terminals wrap there.
func (d Destination) fit(line, end string) string {
	width := d.columns()
	if width == 0 {
		width = defaultWidth
	}
	if utf8.RuneCountInString(line+end) < width {
		return line + end
	}
	if utf8.RuneCountInString(end) > width/2 {
		line, end = line+end, ""
	}
	room := max(0, width-2-utf8.RuneCountInString(end))
	return string([]rune(line)[:room]) + "…" + end
}

// fold divides a text between words into lines of a terminal. The first line begins after some
// columns, the others after as many as further has. Lines of a report are indented; they and
// commands are not divided: they can be copied.
func (d Destination) fold(text string, after int) (lines []string) {
	width := d.columns()
	if width == 0 || after+utf8.RuneCountInString(text) <= width || strings.HasPrefix(text, "  ") ||
		strings.Contains(text, "rdzv exec ") {
		return []string{text}
	}
	line := ""
	for word := range strings.SplitSeq(text, " ") {
		if line != "" && after+utf8.RuneCountInString(line+" "+word) > width {
			lines, line, after = append(lines, line), "", len(further)
		} else if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// InPlace is a text that replaces what a terminal shows, from its first row: as many lines as fit
// if others follow, of which the last one is a prompt.
func (d Destination) InPlace(text string, others int) string {
	rows, columns := d.screen()
	known, free := rows > 0 && columns > 0, rows-others
	var b strings.Builder
	b.WriteString("\x1b[H")
	end := func(line string) { b.WriteString(line + "\x1b[K\n") }
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if known {
			free -= max(1, (utf8.RuneCountInString(colours.Removed(line))+columns-1)/columns)
		}
		if known && (free < 0 || free == 0 && i+1 < len(lines)) {
			end(fmt.Sprintf("... and %s, for which this terminal is too small",
				plural.Of(len(lines)-i, "more line")))
			break
		}
		end(line)
	}
	return b.String() + "\x1b[J"
}
