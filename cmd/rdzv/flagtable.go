package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"rdzv/envmap"
)

// group is a part of the flags of a command, as its help shows them.
type group struct {
	title string // "" if the flags need none
	rows  []flagRow
	note  string // a paragraph after the rows
	brief bool   // list the names after the title, because another command describes the flags
	noEnv bool   // the flags have no RDZV_ variables
}

// flagRow is one flag. The flag set, the help, the man page and the completions are made from it.
type flagRow struct {
	usage string // "--nodes N" or "-q, --quiet"
	text  string // ends with the default in parentheses, if there is one
	value any    // points to what the flag sets, which contains the default
}

// commaList is the value of a repeatable flag whose values can also be separated by commas.
type commaList []string

// name is the flag without dashes.
func (r flagRow) name() string {
	_, rest, _ := strings.Cut(r.usage, "--")
	if end := strings.IndexAny(rest, " ["); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// short is the letter of the flag, "" if it has none.
func (r flagRow) short() string {
	if strings.HasPrefix(r.usage, "--") {
		return ""
	}
	return r.usage[1:2]
}

// argument is how the help calls the value of the flag, "" if the flag takes none.
func (r flagRow) argument() string {
	_, argument, _ := strings.Cut(r.usage[strings.Index(r.usage, "--"):], " ")
	if _, optional, is := strings.Cut(r.usage, "[="); is {
		argument = strings.TrimSuffix(optional, "]")
	}
	return argument
}

// noVariable marks a flag that has no RDZV_ variable.
const noVariable = "no variable"

// define adds the flags of groups to a flag set.
func define(f *pflag.FlagSet, groups []group) *pflag.FlagSet {
	for _, g := range groups {
		for _, r := range g.rows {
			r.define(f)
			if g.noEnv {
				f.Lookup(r.name()).Annotations = map[string][]string{noVariable: {}}
			}
		}
	}
	return f
}

func (r flagRow) define(f *pflag.FlagSet) {
	switch v := r.value.(type) {
	case *string:
		f.StringVarP(v, r.name(), r.short(), *v, r.text)
	case *int:
		f.IntVarP(v, r.name(), r.short(), *v, r.text)
	case *bool:
		f.BoolVarP(v, r.name(), r.short(), *v, r.text)
	case *time.Duration:
		f.DurationVarP(v, r.name(), r.short(), *v, r.text)
	case *[]string:
		f.StringArrayVarP(v, r.name(), r.short(), *v, r.text)
	case *commaList:
		f.StringSliceVarP((*[]string)(v), r.name(), r.short(), *v, r.text)
	case pflag.Value:
		f.VarP(v, r.name(), r.short(), r.text)
		if optional, is := v.(interface{ noValue() string }); is {
			f.Lookup(r.name()).NoOptDefVal = optional.noValue()
		}
	default:
		panic(fmt.Sprintf("the value of --%s is a %T", r.name(), v))
	}
}

// The columns of a flag's text and variable in the help, and the width of the help.
const (
	textColumn     = 28
	variableColumn = 59
	helpWidth      = 80
)

// help is the group as the help of a command shows it.
func (g group) help() string {
	if g.brief {
		names := make([]string, len(g.rows))
		for i, r := range g.rows {
			names[i] = "--" + r.name()
		}
		sentence := g.title + ": " + strings.Join(names, ", ") + "."
		return strings.Join(fold(sentence, helpWidth), "\n") + "\n"
	}
	var b strings.Builder
	if g.title != "" {
		b.WriteString(g.title + ":\n")
	}
	for _, r := range g.rows {
		b.WriteString(r.help(g.noEnv))
	}
	if g.note != "" {
		b.WriteString("\n" + g.note)
	}
	return b.String()
}

func (r flagRow) help(noEnv bool) string {
	width, env := variableColumn-textColumn-2, variable(r.name())
	if noEnv {
		width, env = helpWidth-textColumn, ""
	}
	lines := fold(r.text, width)
	first := fmt.Sprintf("    %-*s%-*s%s", textColumn-4, r.usage, variableColumn-textColumn, lines[0],
		env)
	lines[0] = strings.TrimRight(first, " ")
	return strings.Join(lines, "\n"+strings.Repeat(" ", textColumn)) + "\n"
}

// fold splits text into lines of at most width bytes, between words.
func fold(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimLeft(line+" "+word, " ")
	}
	return append(lines, line)
}

// variable is the environment variable of a flag: RDZV_JOIN_TIMEOUT for --join-timeout.
func variable(flag string) string {
	return "RDZV_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// choices are the values of a flag, nil if it has no fixed ones.
func (r flagRow) choices() []string {
	switch argument := r.argument(); {
	case r.name() == "launcher":
		return envmap.Choices()
	case r.name() == "device":
		return envmap.DeviceModes()
	case r.name() == "capture":
		return captureModes()
	case r.name() == "nproc-per-node":
		return []string{"gpu", "cpu", "auto"}
	case argument == "" || argument != strings.ToLower(argument):
		return nil
	default: // sh|json
		return strings.Split(argument, "|")
	}
}

func (r flagRow) takesFile() bool      { return r.argument() == "FILE" }
func (r flagRow) takesDirectory() bool { return r.argument() == "DIR" }
