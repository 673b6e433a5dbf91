package envmap

import (
	"strconv"
	"strings"
)

// ParseExports parses exports as a user gives them: NAME, PREFIX* and NAME=VALUE, several of them
// separated by commas. A VALUE may contain commas and therefore ends with the text.
func ParseExports(texts []string) (exports []Export, err error) {
	for _, text := range texts {
		for more := true; more; {
			var item string
			item, text, more = cutExport(text)
			e, err := parseExport(item)
			if err != nil {
				return nil, err
			}
			exports = append(exports, e)
		}
	}
	return exports, nil
}

// cutExport cuts text after its first export.
func cutExport(text string) (item, rest string, more bool) {
	item, rest, more = strings.Cut(text, ",")
	if strings.Contains(item, "=") {
		return text, "", false
	}
	return item, rest, more
}

func parseExport(item string) (Export, *Error) {
	name, value, given := strings.Cut(item, "=")
	prefix, isPrefix := strings.CutSuffix(name, "*")
	switch {
	case given:
		if other := laterName(value); other != "" {
			why := `: its value contains ",` + other + `="`
			return Export{}, &Error{
				Text: "cannot export " + strconv.Quote(name) + why,
				Hint: "repeat --export for each NAME=VALUE; --export @FILE accepts any value",
			}
		}
		return newExport(Export{Name: name, Given: true, Value: value})
	case name == "*":
		return Export{}, &Error{
			Text: `cannot export "*": it has no prefix`,
			Hint: "name the variables, or use a prefix: NCCL_*",
		}
	case name == "ALL", name == "NONE", name == "NIL": // srun --export, srun(1)
		return Export{}, &Error{
			Text: "cannot export " + strconv.Quote(name) +
				": it is a word of srun, not the name of a variable",
			Hint: "workers have the environment of their own agent; name the variables to copy from " +
				"rank 0's, such as NCCL_*",
		}
	case isPrefix:
		return newExport(Export{Name: prefix, Prefix: true})
	}
	return newExport(Export{Name: name})
}

// laterName is the name of a second NAME=VALUE that was probably meant to be an export of its own.
func laterName(value string) string {
	parts := strings.Split(value, ",")
	for _, part := range parts[1:] {
		if name, _, ok := strings.Cut(part, "="); ok && isName(name) {
			return name
		}
	}
	return ""
}

// newExport checks an export. No error repeats a value.
func newExport(e Export) (Export, *Error) {
	why, hint := unexportable(e.Name), ""
	switch {
	case !isName(e.Name):
		why, hint = "not a variable's name", "write NAME, NAME=VALUE or PREFIX*"
	case strings.ContainsRune(e.Value, 0):
		why = "its value contains a NUL byte"
	case why == "" && e.Prefix && ofOneNode(e.Name):
		why = "such variables must be named in full"
	}
	if why != "" {
		text := "cannot export " + strconv.Quote(e.String()) + ": " + why
		return Export{}, &Error{Text: text, Hint: hint}
	}
	return e, nil
}

// ParseExportFile parses a file of exports: one NAME=VALUE on each line, empty lines, and comments,
// which begin with "#". The value is the rest of the line as it is: there are no quotes, escapes or
// references to other variables, as in the files of docker's --env-file. A value in quotes is
// rejected, because other readers of such files would remove them.
func ParseExportFile(text string) (exports []Export, err error) {
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		line = strings.TrimSuffix(strings.TrimLeft(line, " \t"), "\r")
		if line == "" || line[0] == '#' {
			continue
		}
		e, err := parseExportLine(line)
		if err != nil {
			return nil, &Error{Text: "line " + itoa(number) + ": " + err.Text, Hint: err.Hint}
		}
		exports = append(exports, e)
	}
	return exports, nil
}

func parseExportLine(line string) (Export, *Error) {
	name, value, given := strings.Cut(line, "=")
	if !given || !isName(name) { // it may be any file: the text before "=" may be a secret too
		return Export{}, &Error{Text: "not NAME=VALUE"}
	}
	if n := len(value); n > 1 && value[0] == value[n-1] && strings.ContainsAny(value[:1], `"'`) {
		return Export{}, &Error{
			Text: "the value of " + strconv.Quote(name) + " is in quotes",
			Hint: "omit the quotes: the value is the rest of the line as it is",
		}
	}
	return newExport(Export{Name: name, Given: true, Value: value})
}
