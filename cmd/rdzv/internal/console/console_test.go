package console

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func terminal(width int) Destination { return Of(Uncoloured, 24, width) }

// hinted is an error with a hint.
type hinted struct {
	error
	hint string
}

func (h hinted) Hint() string { return h.hint }

// The same calls of consoles with different settings.
func TestWrite(t *testing.T) {
	messages := func(c *Console) {
		c.Info("info %d", 1)
		c.Verbose("verbose")
		c.Warn("two\nlines\n")
		c.Fail(hinted{errors.New("cannot b"), "c"})
	}
	statuses := func(c *Console) {
		c.Status("1 of 3", 0)
		c.Status("1 of 3", 0)
		c.Status("2 of 3", 0)
		c.Warn("other")
		c.Status("2 of 3", 0)
		c.EndStatus()
		c.EndStatus()
		c.Warn("end")
		c.Status("2 of 3", 0)
	}
	clock := func() time.Time { return time.Unix(1795874587, 0) }
	const always = "rdzv: two\nrdzv: lines\nrdzv: cannot b\nrdzv: hint: c\n"
	for name, test := range map[string]struct {
		console *Console
		write   func(c *Console)
		want    string
	}{
		"messages":       {&Console{}, messages, "rdzv: info 1\n" + always},
		"quiet messages": {&Console{quiet: true}, messages, always},
		"verbose messages": {&Console{verbose: true}, messages,
			"rdzv: info 1\nrdzv: verbose\n" + always},
		"times": {&Console{now: clock}, messages, "rdzv: 2026-11-28T14:03:07Z info 1\n" +
			"rdzv: 2026-11-28T14:03:07Z two\nrdzv: lines\nrdzv: 2026-11-28T14:03:07Z cannot b\nrdzv: hint: c\n"},
		"times of a status": {&Console{now: clock, quiet: false}, func(c *Console) { c.Status("1", 0); c.Status("1", 0) },
			"rdzv: 2026-11-28T14:03:07Z 1 (0s)\n"},
		"no times on a terminal": {&Console{now: clock, to: Of(Plain, 0, 0)}, messages,
			"rdzv: info 1\n" + always},
		"quiet status": {&Console{quiet: true}, statuses, "rdzv: other\nrdzv: end\n"},
		"status in a file": {
			&Console{}, statuses,
			"rdzv: 1 of 3 (0s)\nrdzv: 2 of 3 (0s)\nrdzv: other\nrdzv: end\nrdzv: 2 of 3 (0s)\n",
		},
		"status on a terminal": {
			&Console{to: terminal(80)}, statuses,
			erase + "rdzv: 1 of 3 (0s)" + erase + "rdzv: 1 of 3 (0s)" + erase + "rdzv: 2 of 3 (0s)" +
				erase + "rdzv: other\n" + erase + "rdzv: 2 of 3 (0s)" +
				erase + "rdzv: end\n" + erase + "rdzv: 2 of 3 (0s)",
		},
	} {
		var out strings.Builder
		test.console.out = &out
		if test.write(test.console); out.String() != test.want {
			t.Errorf("%s: wrote %q\nwant %q", name, &out, test.want)
		}
	}
}

// The status line never fills the last column of the terminal.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		width     int
		line, end string
		want      string
	}{
		{20, "rdzv: 1 of 3", "", "rdzv: 1 of 3"},
		{13, "rdzv: 1 of 3", "", "rdzv: 1 of 3"},
		{12, "rdzv: 1 of 3", "", "rdzv: 1 of…"},
		{10, "rdzv: äöüäöü", "", "rdzv: äö…"},
		{1, "rdzv: 1 of 3", "", "…"},
		{20, "rdzv: 1 of 3 joined", " (1m5s)", "rdzv: 1 of … (1m5s)"},
		{21, "rdzv: 1 of 3", " (1m5s)", "rdzv: 1 of 3 (1m5s)"},
		{10, "rdzv: 1 of 3", " (1m5s)", "rdzv: 1 …"},
		{0, strings.Repeat("x", 100), "", strings.Repeat("x", 78) + "…"},
	} {
		if got := terminal(c.width).fit(c.line, c.end); got != c.want {
			t.Errorf("fit(%q, %q) with %d columns = %q, want %q", c.line, c.end, c.width, got, c.want)
		}
	}
}

// Events and errors come from several goroutines.
func TestConcurrentHints(t *testing.T) {
	var out strings.Builder
	c := &Console{out: &out}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() { c.Fail(hinted{errors.New("cannot b"), fmt.Sprint("hint ", i%10)}) })
	}
	wg.Wait()
	if n := strings.Count(out.String(), "hint: "); n != 10 {
		t.Errorf("%d hints, want 10:\n%s", n, &out)
	}
}

// Text from outside cannot control the terminal, whatever it is part of.
func TestConsoleShowsControlCharacters(t *testing.T) {
	var out strings.Builder
	c := &Console{out: &out, to: terminal(0)}
	c.Warn("host %s", "a\x1b[2Jb")
	c.Hint("set \x9b")
	c.Status("waiting for \x1b[1;1Hnode", 0)
	want := "rdzv: host a\\x1b[2Jb\nrdzv: hint: set \\x9b\n" + erase + `rdzv: waiting for \x1b[1;1Hnode (0s)`
	if out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
}

// On a terminal a line is divided between words, so that the terminal does not divide a word. What
// can be copied is not.
func TestLinesOfTerminal(t *testing.T) {
	narrow := Of(Coloured, 24, 30)
	for text, want := range map[string]string{
		"short": "rdzv: short\n",
		"cannot start: script \"é.py\" is missing": "rdzv: cannot start: script\nrdzv:   \"é.py\" is missing\n",
		"one " + strings.Repeat("x", 40) + " two": "rdzv: one\nrdzv:   " + strings.Repeat("x", 40) +
			"\nrdzv:   two\n",
		"did you mean rdzv exec -- python3 train.py?": "rdzv: did you mean rdzv exec -- python3 train.py?\n",
		"  message  ValueError: no such file in data": "rdzv:   message  ValueError: no such file in data\n",
	} {
		var out strings.Builder
		(&Console{out: &out, to: narrow}).Warn("%s", text)
		if out.String() != want {
			t.Errorf("%q: %q, want %q", text, out.String(), want)
		}
	}
	var out strings.Builder
	(&Console{out: &out, to: narrow}).Hint("change to the directory")
	if want := "rdzv: \x1b[35mhint:\x1b[m change to the\nrdzv:   directory\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
