package tables

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"rdzv/cmd/rdzv/internal/visible"
	"rdzv/internal/nodelist"
	"rdzv/internal/plural"
	"rdzv/rdzv/check"
)

// factWidth is the width of the column of facts in the table of check. The others are a mark, the
// value, and the nodes.
const factWidth = 18

// Check is the report of check for people, in lines of a width, see [console.Screen.Width].
func Check(r check.Report, width int) string {
	b := page{width: width}
	fmt.Fprintf(&b, "%s: %s, %s\n", plural.Of(len(r.Nodes), "node"),
		visible.Line(nodelist.Short(r.Nodes)),
		plural.Of(r.Workers, "worker"))
	if r.Joined < r.Tasks {
		fmt.Fprintf(&b, "only %d of %s joined\n", r.Joined, tasks(r.Tasks, r.Launched))
	}
	b.WriteString("\n")
	differ := false
	for _, row := range r.Rows {
		writeRow(&b, row, len(r.Nodes))
		differ = differ || row.Differs() && !row.Warned
	}
	if differ {
		b.WriteString("\n* the nodes differ\n")
	}
	writeFindings(&b, "error", r.Problems, len(r.Nodes))
	writeFindings(&b, "warning", r.Warnings, len(r.Nodes))
	b.WriteString("\n" + checkVerdict(r) + "\n")
	return b.String()
}

// tasks is so many tasks of a launcher or, without one, agents.
func tasks(n int, launched bool) string {
	if launched {
		return plural.Of(n, "task")
	}
	return plural.Of(n, "agent")
}

// checkVerdict says whether exec would start the program.
func checkVerdict(r check.Report) string {
	workers := plural.Of(r.Workers, "worker") + " on " + plural.Of(len(r.Nodes), "node")
	switch n := len(r.Problems); {
	case n > 0:
		return "not ok: the job would fail: " + plural.Of(n, "error")
	case r.Joined < r.Tasks:
		return "not ok: rdzv exec would wait for " + tasks(r.Tasks-r.Joined, r.Launched)
	case len(r.Warnings) > 0:
		return "ok, with " + plural.Of(len(r.Warnings), "warning") +
			": rdzv exec would start " + workers
	}
	return "ok: rdzv exec would start " + workers
}

// writeRow writes a fact: one line if all nodes agree, otherwise one for each value.
func writeRow(b *page, row check.Row, nodes int) {
	mark := " "
	switch {
	case row.Warned:
		mark = "!"
	case row.Differs():
		mark = "*"
	}
	if row.Own {
		row.Groups = []check.Group{{Value: nodelist.Short(valuesOf(row)), Nodes: nil}}
	}
	fact := visible.Line(row.Fact)
	for _, g := range row.Groups {
		on := ""
		if n := len(g.Nodes); n > 0 && (len(row.Groups) > 1 || n < nodes) {
			on = "on " + visible.Line(nodelist.Short(g.Nodes))
		}
		writeColumns(b, mark, fact, visible.Line(g.Value), on)
		mark, fact = " ", ""
	}
}

func valuesOf(row check.Row) (values []string) {
	for _, g := range row.Groups {
		values = append(values, g.Value)
	}
	return values
}

// writeColumns writes a line, and more if texts are too long for it. A value without nodes after it
// has both columns.
func writeColumns(b *page, mark, fact, value, nodes string) {
	rest := b.width - 2 - factWidth - 2
	nodesWidth := (2*rest + 4) / 5
	width := rest - nodesWidth - 2
	if nodes == "" {
		width = rest
	}
	facts := wrapped(fact, factWidth)
	values, ons := wrapped(value, width), wrapped(nodes, nodesWidth)
	for i := range max(len(facts), len(values), len(ons)) {
		line := mark + " " + pad(at(facts, i), factWidth) + "  " + pad(at(values, i), width) + "  " +
			at(ons, i)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		mark = " "
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// wrapped splits a text into lines of at most width characters, between words if possible.
func wrapped(text string, width int) (lines []string) {
	runes := []rune(text)
	for len(runes) > width {
		end := width
		for i := width; i > 0; i-- {
			if runes[i] == ' ' {
				end = i
				break
			}
		}
		lines = append(lines, strings.TrimSpace(string(runes[:end])))
		runes = []rune(strings.TrimLeft(string(runes[end:]), " "))
	}
	return append(lines, string(runes))
}

// writeFindings writes problems or warnings, each with its nodes and what to do, unless the same
// follows.
func writeFindings(b *page, kind string, findings []check.Finding, nodes int) {
	for i, f := range findings {
		text := kind + ": " + visible.Line(f.Text)
		if n := len(f.Nodes); n > 0 && nodes > 1 {
			text += " (on " + visible.Line(nodelist.Short(f.Nodes)) + ")"
		}
		b.WriteString("\n" + strings.Join(folded(text, b.width-4), "\n    ") + "\n")
		if f.Hint != "" && (i == len(findings)-1 || findings[i+1].Hint != f.Hint) {
			hint := folded("hint: "+visible.Line(f.Hint), b.width-4)
			b.WriteString("    " + strings.Join(hint, "\n    ") + "\n")
		}
	}
}
