package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withins says for each call of End whether a worker's output ends within a line.
type withins []bool

func (w *withins) End() (within bool) {
	if len(*w) > 0 {
		within, *w = (*w)[0], (*w)[1:]
	}
	return within
}

func (w *withins) Wrote(string)             {}
func (w *withins) Shows([]string, int) bool { return false }

// A line begins at the left, after what a worker has written that is no complete line.
func TestNewLine(t *testing.T) {
	const left = "          \r\x1b[J" // also below: a worker leaves the cursor above its progress bars
	lines := func(c *Console) {
		c.Warn("one\ntwo\n")
		c.Warn("three")
	}
	started := func(c *Console) {
		c.Warn("before")
		c.WorkersBegin()
		c.Warn("one")
		c.Status("waiting", 0)
		c.Warn("two")
	}
	completed := func(c *Console) {
		c.CompleteLine()
		c.Warn("one")
	}
	for name, test := range map[string]struct {
		console *Console
		line    withins
		write   func(c *Console)
		want    string
	}{
		"known":     {&Console{}, withins{true, false}, lines, "\nrdzv: one\nrdzv: two\nrdzv: three\n"},
		"later":     {&Console{}, withins{false, true}, lines, "rdzv: one\nrdzv: two\n\nrdzv: three\n"},
		"status":    {&Console{}, withins{true}, func(c *Console) { c.Status("1", 0) }, "\nrdzv: 1 (0s)\n"},
		"completed": {&Console{}, withins{true}, completed, "\nrdzv: one\n"},
		"terminal": {&Console{to: terminal(10)}, nil, started, "rdzv: before\n" +
			left + "rdzv: one\n" + left + "rdz… (0s)" + erase + "rdzv: two\n"},
		"terminal of unknown width": {&Console{to: terminal(0)}, withins{false, true}, started,
			"rdzv: before\n\nrdzv: one\n" + erase + "rdzv: waiting (0s)" + erase + "rdzv: two\n"},
	} {
		var out strings.Builder
		test.console.out = &out
		test.console.Follow(&test.line)
		if test.write(test.console); out.String() != test.want {
			t.Errorf("%s: wrote %q\nwant %q", name, &out, test.want)
		}
	}
}

// In a file the last byte tells it, whoever has written it.
func TestNewLineInFile(t *testing.T) {
	for _, test := range []struct {
		flags        int
		before, want string
	}{
		{os.O_APPEND, "", "rdzv: one\nrdzv: two\n"},
		{os.O_APPEND, "10%", "10%\nrdzv: one\nrdzv: two\n"},
		{os.O_APPEND, "10%\r", "10%\r\nrdzv: one\nrdzv: two\n"},
		{os.O_APPEND, "10%\n", "10%\nrdzv: one\nrdzv: two\n"},
		{0, "10%\n20%", "10%\n20%\nrdzv: one\nrdzv: two\n"},
		{0, "10%\n", "10%\nrdzv: one\nrdzv: two\n"},
	} {
		name := filepath.Join(t.TempDir(), "file")
		f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|test.flags, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(test.before)
		c := New(f, Setting{})
		c.Warn("one")
		c.Warn("two")
		f.Close()
		if text, _ := os.ReadFile(name); string(text) != test.want {
			t.Errorf("the file has %q, want %q", text, test.want)
		}
	}
}

// A status line is erased once, before the first line that follows.
func TestStatusIsErasedOnce(t *testing.T) {
	var out strings.Builder
	c := To(&out, terminal(80))
	c.Status("waiting", 0)
	out.Reset()
	c.Warn("one")
	c.Warn("two")
	if got, want := out.String(), erase+"rdzv: one\nrdzv: two\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
