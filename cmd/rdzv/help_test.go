package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"rdzv/envmap"
)

// Every help says how the command is called, gives a real example first, fits on a
// terminal, and ends with the exit codes.
func TestHelpIsComplete(t *testing.T) {
	for _, c := range commands() {
		if !strings.HasPrefix(c.help, "Usage: rdzv "+c.name) {
			t.Errorf("the help of %s begins with another usage", c.name)
		}
		if parts := strings.SplitN(c.help, "\n\n", 3); len(parts) < 3 || !strings.HasPrefix(parts[1], "    ") || !strings.Contains(parts[1], "rdzv ") {
			t.Errorf("the help of %s has no example behind the usage", c.name)
		}
		if !strings.Contains(c.help, "\nExit status") {
			t.Errorf("the help of %s has no exit codes", c.name)
		}
		if !strings.Contains(overview, "\n    "+c.name+" ") {
			t.Errorf("the overview does not list %s", c.name)
		}
	}
	for _, text := range append([]string{overview}, helps()...) {
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); len(line) > 80 || strings.TrimRight(line, " ") != line {
				t.Errorf("longer than 80 columns, or ending in a blank: %q", line)
			}
		}
	}
}

func helps() (texts []string) {
	for _, c := range commands() {
		texts = append(texts, c.help)
	}
	return texts
}

// Every flag stands in the help of its command with its default and the variable
// that stands for it, and no other flag does.
func TestHelpNamesEveryFlag(t *testing.T) {
	o := &options{}
	exec := newFlags("exec")
	o.define(exec)
	o.defineExec(exec)
	env, _, _ := (&options{}).envFlags()
	rank, _, _, _ := getRankFlags()
	for _, c := range []struct {
		help  string
		flags *pflag.FlagSet
		bare  []string // named without a paragraph, or without a variable
	}{
		{execHelp, exec, nil},
		{envHelp, env, []string{"launcher", "nodes", "nproc-per-node", "job", "master-port", "device", "set", "as"}},
		{getRankHelp, rank, []string{"local", "node", "size", "local-size", "nodes"}},
	} {
		said := paragraphs(t, c.help)
		c.flags.VisitAll(func(f *pflag.Flag) {
			text, named := said[f.Name]
			delete(said, f.Name)
			switch {
			case slices.Contains(c.bare, f.Name):
				if !strings.Contains(c.help, "--"+f.Name) {
					t.Errorf("the help of %s does not name --%s", c.flags.Name(), f.Name)
				}
			case !named:
				t.Errorf("the help of %s does not name --%s", c.flags.Name(), f.Name)
			default:
				checkFlag(t, c.flags.Name(), f, text)
			}
		})
		for name := range said {
			t.Errorf("the help of %s names --%s, which is no flag", c.flags.Name(), name)
		}
	}
}

func checkFlag(t *testing.T, command string, f *pflag.Flag, text string) {
	t.Helper()
	if !slices.Contains(strings.Fields(text), variable(f.Name)) {
		t.Errorf("the help of %s does not name %s beside --%s", command, variable(f.Name), f.Name)
	}
	if value := shown(f); value != "" && !strings.Contains(text, "("+value+")") {
		t.Errorf("the help of %s does not say that --%s is %s if it is not given", command, f.Name, value)
	}
	if f.Shorthand != "" && !strings.Contains(text, "-"+f.Shorthand+", ") {
		t.Errorf("the help of %s does not say that --%s is -%s too", command, f.Name, f.Shorthand)
	}
}

// shown is a flag's default for people, "" where there is none to tell.
func shown(f *pflag.Flag) string {
	if d, err := time.ParseDuration(f.DefValue); err == nil && d != 0 {
		return strings.Replace(d.String(), "m0s", "m", 1)
	}
	if slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
		return ""
	}
	return f.DefValue
}

var flagLine = regexp.MustCompile(`^    (?:-\w, )?--([a-z-]+)`)

// paragraphs are what a help says about each flag, which is once.
func paragraphs(t *testing.T, help string) map[string]string {
	t.Helper()
	said, last := map[string]string{}, ""
	for line := range strings.Lines(help) {
		switch m := flagLine.FindStringSubmatch(line); {
		case m != nil:
			last = m[1]
			if said[last] != "" {
				t.Errorf("the help names --%s twice", last)
			}
			said[last] = line
		case last != "" && strings.HasPrefix(line, strings.Repeat(" ", 28)):
			said[last] += line
		default:
			last = ""
		}
	}
	for name, text := range said { // "(the one that is found)" over two lines is one
		said[name] = strings.Join(strings.Fields(text), " ")
	}
	return said
}

// The help of exec names every launcher that --launcher takes, and every field of
// a template.
func TestHelpNamesEveryChoice(t *testing.T) {
	for _, name := range envmap.Choices() {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(execHelp) {
			t.Errorf("the help of exec does not name the launcher %s", name)
		}
	}
	for _, name := range envmap.Fields() {
		if !strings.Contains(execHelp, "{"+name+"}") {
			t.Errorf("the help of exec does not name the field {%s}", name)
		}
	}
	for _, mode := range envmap.DeviceModes() {
		if !strings.Contains(execHelp, mode) {
			t.Errorf("the help of exec does not name the device mode %s", mode)
		}
	}
}

var usageBlock = regexp.MustCompile("(?s)```\n(Usage: rdzv .*?)```")

// docs/usage.md contains the help as it is printed.
func TestUsageContainsTheHelp(t *testing.T) {
	readme, err := os.ReadFile("../../docs/usage.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := usageBlock.FindAllStringSubmatch(string(readme), -1)
	for _, b := range blocks {
		if !slices.Contains(append(helps(), overview), b[1]) {
			first, _, _ := strings.Cut(b[1], "\n")
			t.Errorf("docs/usage.md contains another help than the command's own: %s", first)
		}
	}
	for _, want := range []string{execHelp, envHelp, getRankHelp} {
		if !slices.ContainsFunc(blocks, func(b []string) bool { return b[1] == want }) {
			first, _, _ := strings.Cut(want, "\n")
			t.Errorf("docs/usage.md does not contain the help of %q", first)
		}
	}
}
