package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
			own := options.New().Flags(m[1], command.Groups)
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
	pages := []string{"../../README.md"}
	fatalIf(t, filepath.WalkDir("../../docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	}))
	for _, page := range pages {
		text, err := os.ReadFile(page)
		fatalIf(t, err)
		for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
			check(strings.TrimPrefix(page, "../../"), line)
		}
	}
	if commandsSeen < 100 {
		t.Errorf("%d commands", commandsSeen)
	}
}
