package main

import (
	"fmt"
	"strings"
)

const manHelp = `Usage: rdzv man

    rdzv man | man -l -

Print the manual page rdzv(1), which contains the help of all commands. "make
install" installs it.

Exit status:
    0        printed
    2        wrong usage
`

func (a *app) man(args []string) int {
	if len(args) > 0 {
		return a.usage(fmt.Errorf("cannot run man: unexpected argument %q", args[0]), "man")
	}
	return a.print(manPage(listed()))
}

// manPage is the manual page in the macros of man(7).
func manPage(commands []command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH RDZV 1 \"\" \"rdzv %s\" \"User Commands\"\n",
		roffQuoted.Replace(thisBuild().version))
	b.WriteString(".nh\n.ad l\n")
	b.WriteString(".SH NAME\nrdzv \\- run a PyTorch program as one distributed job\n.SH SYNOPSIS\n")
	usage, rest := cutUsage(overviewHelp())
	b.WriteString(roffLines(usage))
	b.WriteString(".SH DESCRIPTION\n" + roff(rest))
	for _, c := range commands {
		usage, prose := cutUsage(c.prose)
		fmt.Fprintf(&b, ".SH \"rdzv %s\"\n%s.PP\n", roffQuoted.Replace(c.name), roffLines(usage))
		before, after, _ := strings.Cut(prose, "{flags}\n")
		b.WriteString(roff(before))
		for _, g := range c.flags {
			b.WriteString(g.roff())
		}
		b.WriteString(roff(after))
	}
	return b.String()
}

// cutUsage splits a help behind its usage.
func cutUsage(help string) (usage, rest string) {
	usage, rest, _ = strings.Cut(strings.TrimPrefix(help, "Usage: "), "\n\n")
	return usage + "\n", rest
}

// roff is the group as a section of the manual page.
func (g group) roff() string {
	if g.brief {
		return ".PP\n" + roff(g.help())
	}
	var b strings.Builder
	if g.title != "" {
		b.WriteString(".SS " + roffQuoted.Replace(g.title) + "\n")
	}
	for _, r := range g.rows {
		text := r.text + "."
		if !g.noEnv {
			text += " " + variable(r.name())
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s", roffQuoted.Replace(r.usage), roffLines(text+"\n"))
	}
	if g.note != "" {
		b.WriteString(".PP\n" + roff(strings.ReplaceAll("\n"+g.note, "\n    ", "\n")))
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
