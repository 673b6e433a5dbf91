package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/cmd/rdzv/internal/options"
)

// pageCommand is a command of rdzv on a page, in a block or in a sentence: its name, and its flags up
// to the program, a comment, or the end.
var pageCommand = regexp.MustCompile("\\brdzv ([a-z][a-z-]*)((?: +[^ #`|>;&]+)*)")

// The commands on the pages exist, and have the flags that they are given there.
func TestCommandsOfPages(t *testing.T) {
	commandsSeen := 0
	check := func(page, line string) {
		for _, m := range pageCommand.FindAllStringSubmatch(line, -1) {
			command, ok := allCommands().find(m[1])
			if !ok {
				continue // a sentence about rdzv
			}
			own := options.New().Flags(m[1], command.groups)
			commandsSeen++
			for _, word := range strings.Fields(m[2]) {
				if word == "--" || strings.HasSuffix(word, ".py") {
					break
				}
				name, _, _ := strings.Cut(strings.TrimLeft(word, "-[("), "=")
				name = strings.TrimRight(name, "].,:)")
				if !strings.HasPrefix(word, "-") || name == "h" || name == "help" || name == "" {
					continue
				}
				known := own.Lookup(string(flags.Canonical(own, name)))
				if len(name) == 1 {
					known = own.ShorthandLookup(name)
				}
				if known == nil {
					t.Errorf("%s: rdzv %s does not know %s: %s", page, m[1], word, m[0])
				}
			}
		}
	}
	for page, text := range pages(t) {
		for line := range strings.Lines(text) {
			check(page, line)
		}
	}
	if commandsSeen < 100 {
		t.Errorf("%d commands", commandsSeen)
	}
}

// pages are README.md and those of docs, each with its lines that a backslash continues joined.
func pages(t *testing.T) map[string]string {
	t.Helper()
	files := []string{"../../README.md"}
	fatalIf(t, filepath.WalkDir("../../docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	}))
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		fatalIf(t, err)
		texts[strings.TrimPrefix(file, "../../")] = strings.ReplaceAll(string(text), "\\\n", "")
	}
	return texts
}

var (
	// startLine is a whole command line of exec or check in a block, up to a comment, a continuation
	// of the sentence beside it or another command of a shell.
	startLine = regexp.MustCompile(`(?m)^ {4,}.*?\brdzv (exec|check) (.*?)(?:    .*| #.*| \|\| .*|[;>].*)?$`)
	// startCode is one in a sentence.
	startCode = regexp.MustCompile("`(?:[^`\n]* )?rdzv (exec|check) ([^`\n]+)`")
	// aWord is a word of a command line, perhaps with quotes.
	aWord = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`)
)

// The command lines of exec and check on the pages can be read: their flags have valid values, and the
// program is what the page means, which is no flag. Those with "..." are incomplete.
func TestCommandLinesOfPages(t *testing.T) {
	seen := 0
	for page, text := range pages(t) {
		if page == "docs/reference/commands.md" {
			continue // the help: a usage has the names of values
		}
		found := append(startLine.FindAllStringSubmatch(text, -1),
			startCode.FindAllStringSubmatch(text, -1)...)
		for _, m := range found {
			args := aWord.FindAllString(m[2], -1)
			for i := range args {
				args[i] = strings.Trim(args[i], `'"`)
			}
			if slices.Contains(args, "...") {
				continue
			}
			seen++
			if err := readable(m[1], args); err != nil {
				t.Errorf("%s: rdzv %s %s: %v", page, m[1], m[2], err)
			}
		}
	}
	if seen < 50 {
		t.Errorf("%d command lines", seen)
	}
}

// readable is why exec or check cannot read its arguments. A program may be missing.
func readable(command string, args []string) error {
	o := options.New()
	own := o.ExecFlags()
	if command == "check" {
		f := newCheckFlags()
		o, own = f.options, f.options.Flags("check", f.groups())
	}
	words, err := flags.Parse(own, args, nil)
	if err != nil {
		return err
	}
	program, err := new(app).program(command, words, o)
	if len(program) > 0 && strings.HasPrefix(program[0], "[") {
		return fmt.Errorf("the program is %q", program[0])
	}
	return flags.Join(err, o.Check(nil))
}
