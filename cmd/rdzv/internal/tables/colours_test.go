package tables

import (
	"strings"
	"testing"
	"time"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/visible"
	"rdzv/internal/colours"
	"rdzv/rdzv"
	"rdzv/rdzv/check"
	"rdzv/rdzv/stacks"
	"rdzv/rdzv/status"
)

// What is to be looked at is coloured, and nothing else, and columns have the same widths as without
// colours.
func TestColours(t *testing.T) {
	const off = "\x1b[m"
	wrong := check.Report{
		Nodes: []string{"n1", "n2"}, Workers: 2, Joined: 2, Tasks: 2,
		Rows: []check.Row{
			{Fact: "kernel", Groups: []check.Group{{Value: "ok: 6"}}},
			{Fact: "/dev/shm", Warned: true, Groups: []check.Group{{Value: "1!", Nodes: []string{"n1"}}}},
			{Fact: "open files", Groups: []check.Group{
				{Value: "1", Nodes: []string{"n1"}}, {Value: "2 *", Nodes: []string{"n2"}}}},
		},
		Problems: []check.Finding{{Text: "no (ok: x)", Hint: "error: y"}},
		Warnings: []check.Finding{{Text: "slow"}},
	}
	right := check.Report{Nodes: []string{"n1"}, Workers: 1, Joined: 1, Tasks: 1}
	rank := func(n int, state status.State, code *int) status.Rank {
		return status.Rank{Rank: n, Host: "stopped-node", State: state, ExitCode: code, Init: new(true),
			LastLine: "epoch 1 stopped here"}
	}
	job := status.Job{Job: "a", State: status.Running, WorldSize: 4, Nodes: 1, Ranks: []status.Rank{
		rank(0, status.Alive, nil), rank(1, status.Stopped, nil), rank(2, status.Exited, new(0)),
		rank(3, status.Exited, new(13)),
	}}
	killed := job
	killed.Ranks = []status.Rank{{State: status.Exited, Signal: rdzv.Signal(9), Seconds: time.Hour.Seconds()}}
	for name, c := range map[string]struct {
		table func(console.Destination) string
		want  []string
	}{
		"not ok": {func(to console.Destination) string { return Check(wrong, to) }, []string{
			"\x1b[31m!" + off, "\x1b[35m*" + off, "\x1b[35m*" + off, "\x1b[31merror:" + off,
			"\x1b[35mhint:" + off, "\x1b[35mwarning:" + off, "\x1b[31mnot ok:" + off,
		}},
		"ok": {func(to console.Destination) string { return Check(right, to) }, []string{"\x1b[32mok" + off}},
		"states": {func(to console.Destination) string { return Status([]status.Job{job}, to, false) },
			[]string{"\x1b[35mrank 1 (stopped-node) is stopped by a signal or a debugger" + off,
				"\x1b[31mstopped" + off, "\x1b[31mexit 13" + off}},
		"a signal": {func(to console.Destination) string { return Status([]status.Job{killed}, to, false) },
			[]string{"\x1b[31mSIGKILL" + off}},
		"stacks": {func(to console.Destination) string {
			return Stacks([]stacks.Report{stacks.Of("rank 1", hanging(8, 4, true))}, to)
		}, []string{"\x1b[35mrank 2 (node1) is not where the others are: train.py:12" + off}},
	} {
		got, plain := c.table(console.Of(console.Coloured, 24, 100)), c.table(console.Destination{})
		if colours.Removed(got) != plain || strings.Contains(plain, "\x1b") {
			t.Errorf("%s: with colours\n%s\nwithout\n%s", name, visible.Text(got), plain)
		}
		at := got
		for _, want := range c.want {
			_, rest, found := strings.Cut(at, want)
			if !found {
				t.Errorf("%s:\n%s\nwant %q in it", name, visible.Text(got), want)
				break
			}
			at = rest
		}
		if n := strings.Count(got, off); n != len(c.want) {
			t.Errorf("%s: %d coloured parts in\n%q\nwant %d", name, n, got, len(c.want))
		}
	}
}

// Texts fold at the width of a terminal, and each line has its own colour.
func TestFold(t *testing.T) {
	report := []stacks.Report{stacks.Of("train", nil)}
	report[0].Problems = []stacks.Problem{
		{Text: stacks.NotInstalled, Hosts: []string{"a-long-name-of-node1"}},
	}
	for line := range strings.Lines(Stacks(report, console.Of(console.Plain, 24, 80))) {
		if len(line) > 81 {
			t.Errorf("%d columns: %q", len(line), line)
		}
	}
	p := newPage(console.Of(console.Coloured, 24, 60))
	p.folded("\n", part{console.Red, "error:"}, part{console.Magenta, strings.Repeat("nine chr ", 7)})
	const nine = "nine chr nine chr nine chr nine chr nine chr"
	const want = "\n\x1b[31merror:\x1b[m \x1b[35m" + nine + " nine\x1b[m\n    \x1b[35mchr nine chr\x1b[m\n"
	if p.String() != want {
		t.Errorf("folded %q, want %q", p.String(), want)
	}
}
