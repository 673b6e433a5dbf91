package tables

import (
	"fmt"
	"strings"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/visible"
	"rdzv/internal/nodelist"
	"rdzv/internal/plural"
	"rdzv/rdzv/check"
)

// factWidth is the width of the column of facts in the table of check. The others are a mark, the
// value, and the nodes.
const factWidth = 18

// Check is the report of check for people.
func Check(r check.Report, to console.Destination) string {
	b := newPage(to)
	fmt.Fprintf(b, "%s: %s, %s\n", plural.Of(len(r.Nodes), "node"),
		visible.Line(nodelist.Short(r.Nodes)),
		plural.Of(r.Workers, "worker"))
	if r.Joined < r.Tasks {
		fmt.Fprintf(b, "only %d of %s joined\n", r.Joined, tasks(r.Tasks, r.Launched))
	}
	b.WriteString("\n")
	differ := false
	for _, row := range r.Rows {
		writeRow(b, row, len(r.Nodes))
		differ = differ || row.Differs() && !row.Warned
	}
	if differ {
		b.WriteString("\n" + to.Paint(console.Magenta, "*") + " the nodes differ\n")
	}
	writeFindings(b, part{console.Red, "error:"}, r.Problems, len(r.Nodes))
	writeFindings(b, part{console.Magenta, "warning:"}, r.Warnings, len(r.Nodes))
	verdict, rest := checkVerdict(r)
	b.WriteString("\n" + to.Paint(verdict.colour, verdict.text) + rest + "\n")
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
func checkVerdict(r check.Report) (verdict part, rest string) {
	ok, notOK := part{console.Green, "ok"}, part{console.Red, "not ok:"}
	workers := plural.Of(r.Workers, "worker") + " on " + plural.Of(len(r.Nodes), "node")
	switch n := len(r.Problems); {
	case n > 0:
		return notOK, " the job would fail: " + plural.Of(n, "error")
	case r.Joined < r.Tasks:
		return notOK, " rdzv exec would wait for " + tasks(r.Tasks-r.Joined, r.Launched)
	case len(r.Warnings) > 0:
		return ok, ", with " + plural.Of(len(r.Warnings), "warning") +
			": rdzv exec would start " + workers
	}
	return ok, ": rdzv exec would start " + workers
}

// writeRow writes a fact: one line if all nodes agree, otherwise one for each value.
func writeRow(b *page, row check.Row, nodes int) {
	none := part{text: " "}
	mark := none
	switch {
	case row.Warned:
		mark = part{console.Red, "!"}
	case row.Differs():
		mark = part{console.Magenta, "*"}
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
		mark, fact = none, ""
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
func writeColumns(b *page, mark part, fact, value, nodes string) {
	rest := b.width - 2 - factWidth - 2
	nodesWidth := (2*rest + 4) / 5
	width := rest - nodesWidth - 2
	if nodes == "" {
		width = rest
	}
	facts := wrapped(fact, factWidth)
	values, ons := wrapped(value, width), wrapped(nodes, nodesWidth)
	for i := range max(len(facts), len(values), len(ons)) {
		line := " " + pad(at(facts, i), factWidth) + "  " + pad(at(values, i), width) + "  " + at(ons, i)
		b.WriteString(b.to.Paint(mark.colour, mark.text) + strings.TrimRight(line, " ") + "\n")
		mark = part{text: " "}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
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
func writeFindings(b *page, kind part, findings []check.Finding, nodes int) {
	for i, f := range findings {
		text := visible.Line(f.Text)
		if n := len(f.Nodes); n > 0 && nodes > 1 {
			text += " (on " + visible.Line(nodelist.Short(f.Nodes)) + ")"
		}
		b.folded("\n", kind, part{text: text})
		if f.Hint != "" && (i == len(findings)-1 || findings[i+1].Hint != f.Hint) {
			b.folded("    ", part{console.Magenta, "hint:"}, part{text: visible.Line(f.Hint)})
		}
	}
}
