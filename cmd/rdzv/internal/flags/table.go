// Package flags reads the flags of a command and their variables, and has what the help and the
// completions say of them.
package flags

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Group is a part of the flags of a command, as its help shows them.
type Group struct {
	Title string // "" if the flags need none
	Rows  []Row
	Note  string // a paragraph after the rows
	Brief bool   // list the names after the title, because another command describes the flags
	NoEnv bool   // the flags have no RDZV_ variables
}

// Row is one flag. The flag set, the help, the man page and the completions are made from it.
type Row struct {
	Usage string   // "--nodes N" or "-q, --quiet"
	Text  string   // ends with the default in parentheses, if there is one
	Value any      // points to what the flag sets, which contains the default
	Among []string // its values, if they are fixed and Usage does not list them
}

// Flag is a flag without Among.
func Flag(usage, text string, value any) Row { return Row{Usage: usage, Text: text, Value: value} }

// Of is the flag with these values.
func (r Row) Of(words ...string) Row {
	r.Among = words
	return r
}

// CommaList is the value of a repeatable flag whose values can also be separated by commas.
type CommaList []string

// Name is the flag without dashes.
func (r Row) Name() string {
	_, rest, _ := strings.Cut(r.Usage, "--")
	if end := strings.IndexAny(rest, " ["); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// Short is the letter of the flag, "" if it has none.
func (r Row) Short() string {
	if strings.HasPrefix(r.Usage, "--") {
		return ""
	}
	return r.Usage[1:2]
}

// Argument is how the help calls the value of the flag, "" if the flag takes none.
func (r Row) Argument() string {
	_, argument, _ := strings.Cut(r.Usage[strings.Index(r.Usage, "--"):], " ")
	if _, optional, is := strings.Cut(r.Usage, "[="); is {
		argument = strings.TrimSuffix(optional, "]")
	}
	return argument
}

// NoVariable marks a flag that has no RDZV_ variable.
const NoVariable = "no variable"

// Define adds the flags of groups to a flag set.
func Define(f *pflag.FlagSet, groups []Group) *pflag.FlagSet {
	for _, g := range groups {
		for _, r := range g.Rows {
			r.define(f)
			if g.NoEnv {
				f.Lookup(r.Name()).Annotations = map[string][]string{NoVariable: {}}
			}
		}
	}
	return f
}

func (r Row) define(f *pflag.FlagSet) {
	switch v := r.Value.(type) {
	case *string:
		f.StringVarP(v, r.Name(), r.Short(), *v, r.Text)
	case *int:
		f.IntVarP(v, r.Name(), r.Short(), *v, r.Text)
	case *bool:
		f.BoolVarP(v, r.Name(), r.Short(), *v, r.Text)
	case *time.Duration:
		f.DurationVarP(v, r.Name(), r.Short(), *v, r.Text)
	case *[]string:
		f.StringArrayVarP(v, r.Name(), r.Short(), *v, r.Text)
	case *CommaList:
		f.StringSliceVarP((*[]string)(v), r.Name(), r.Short(), *v, r.Text)
	case pflag.Value:
		f.VarP(v, r.Name(), r.Short(), r.Text)
		if optional, is := v.(interface{ NoValue() string }); is {
			f.Lookup(r.Name()).NoOptDefVal = optional.NoValue()
		}
	default:
		panic(fmt.Sprintf("the value of --%s is a %T", r.Name(), v))
	}
}

// The columns of a flag's text and variable in the help, and the width of the help.
const (
	TextColumn     = 28
	variableColumn = 59
	HelpWidth      = 80
)

// Help is the Group as the help of a command shows it.
func (g Group) Help() string {
	if g.Brief {
		names := make([]string, len(g.Rows))
		for i, r := range g.Rows {
			names[i] = "--" + r.Name()
		}
		sentence := g.Title + ": " + strings.Join(names, ", ") + "."
		return strings.Join(Fold(sentence, HelpWidth), "\n") + "\n"
	}
	var b strings.Builder
	if g.Title != "" {
		b.WriteString(g.Title + ":\n")
	}
	for _, r := range g.Rows {
		b.WriteString(r.Help(g.NoEnv))
	}
	if g.Note != "" {
		b.WriteString("\n" + g.Note)
	}
	return b.String()
}

func (r Row) Help(noEnv bool) string {
	width, env := variableColumn-TextColumn-2, Variable(r.Name())
	if noEnv {
		width, env = HelpWidth-TextColumn, ""
	}
	lines := Fold(r.Text, width)
	first := fmt.Sprintf("    %-*s%-*s%s", TextColumn-4, r.Usage, variableColumn-TextColumn, lines[0],
		env)
	lines[0] = strings.TrimRight(first, " ")
	return strings.Join(lines, "\n"+strings.Repeat(" ", TextColumn)) + "\n"
}

// Fold splits text into lines of at most width bytes, between words.
func Fold(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimLeft(line+" "+word, " ")
	}
	return append(lines, line)
}

// Variable is the environment variable of a flag: RDZV_JOIN_TIMEOUT for --join-timeout.
func Variable(flag string) string {
	return "RDZV_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Choices are the values of a flag, nil if it has no fixed ones.
func (r Row) Choices() []string {
	switch argument := r.Argument(); {
	case r.Among != nil:
		return r.Among
	case argument == "" || argument != strings.ToLower(argument):
		return nil
	default: // sh|json
		return strings.Split(argument, "|")
	}
}

func (r Row) TakesFile() bool      { return r.Argument() == "FILE" }
func (r Row) TakesDirectory() bool { return r.Argument() == "DIR" }
