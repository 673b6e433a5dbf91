// Package manpage writes the manual page of rdzv.
package manpage

import (
	"fmt"
	"strings"

	"rdzv/cmd/rdzv/internal/flags"
)

// Of is the manual page in the macros of man(7), of commands and the overview of them.
func Of(version, overview string, commands []flags.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH RDZV 1 \"\" \"rdzv %s\" \"User Commands\"\n",
		roffQuoted.Replace(version))
	b.WriteString(".nh\n.ad l\n")
	b.WriteString(".SH NAME\nrdzv \\- run a PyTorch program as one distributed job\n.SH SYNOPSIS\n")
	usage, rest := cutUsage(overview)
	b.WriteString(roffLines(usage))
	b.WriteString(".SH DESCRIPTION\n" + roff(rest))
	for _, c := range commands {
		usage, prose := cutUsage(c.Prose)
		fmt.Fprintf(&b, ".SH \"rdzv %s\"\n%s.PP\n", roffQuoted.Replace(c.Name), roffLines(usage))
		if c.Name == "exec" {
			prose, _ = cutStatus(prose) // a section of its own
		}
		before, after, _ := strings.Cut(prose, "{flags}\n")
		b.WriteString(roff(before))
		for _, g := range c.Groups {
			b.WriteString(groupRoff(g))
		}
		b.WriteString(roff(after))
	}
	b.WriteString(sections(commands))
	return emptyParagraphs.Replace(b.String())
}

// emptyParagraphs removes the requests for a paragraph before one that begins a list or a section:
// mandoc warns of them.
var emptyParagraphs = strings.NewReplacer(
	".PP\n.TP\n", ".TP\n", ".PP\n.SS ", ".SS ", ".PP\n.SH ", ".SH ",
)

// cutUsage splits a help behind its usage.
func cutUsage(help string) (usage, rest string) {
	usage, rest, _ = strings.Cut(strings.TrimPrefix(help, "Usage: "), "\n\n")
	return usage + "\n", rest
}

// groupRoff is a group as a section of the manual page.
func groupRoff(g flags.Group) string {
	if g.Brief {
		return ".PP\n" + roff(g.Help())
	}
	var b strings.Builder
	if g.Title != "" {
		b.WriteString(".SS " + roffQuoted.Replace(g.Title) + "\n")
	}
	for _, r := range g.Rows {
		text := r.Text + "."
		if !g.NoEnv {
			text += " " + flags.Variable(r.Name())
		}
		b.WriteString(entry(r.Usage, text))
	}
	if g.Note != "" {
		b.WriteString(roff(strings.ReplaceAll("\n"+g.Note, "\n    ", "\n")))
	}
	return b.String()
}

// roff converts paragraphs of a help: lines that are indented keep their form.
func roff(prose string) string {
	var b strings.Builder
	indented := false
	for line := range strings.Lines(prose) {
		text, indent := strings.CutPrefix(line, "    ")
		switch {
		case line == "\n" && !indented:
			b.WriteString(".PP\n")
			continue
		case indent && !indented:
			b.WriteString(".RS 4\n.nf\n")
		case !indent && indented:
			b.WriteString(".fi\n.RE\n.PP\n")
		}
		indented = indent
		if line != "\n" {
			b.WriteString(roffLines(text))
		}
	}
	if indented {
		b.WriteString(".fi\n.RE\n")
	}
	return b.String()
}

var roffQuoted = strings.NewReplacer(
	`\`, `\e`, `-`, `\-`, `'`, `\(aq`, `~`, `\(ti`, "`", `\(ga`, `^`, `\(ha`,
)

// roffLines are lines of text, none of which is taken for a request.
func roffLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, ".") {
			b.WriteString(`\&`)
		}
		b.WriteString(roffQuoted.Replace(line))
	}
	return b.String()
}
