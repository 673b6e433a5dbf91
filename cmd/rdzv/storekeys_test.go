package main

import (
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// runPage runs the commands of a page, in one shell, and checks that they print what the page shows.
// In the page "..." is anything; ids and large numbers are different each time.
func runPage(ts *testscript.TestScript, neg bool, args []string) {
	checkUsage(ts, neg, len(args) == 1, "run-page FILE")
	const mark = "next command"
	script := "set -e\n"
	var shown []string
	for _, block := range pageBlock.FindAllString(ts.ReadFile(args[0]), -1) {
		commands := strings.Split(strings.ReplaceAll("\n"+block, "\n    ", "\n"), "\n$ ")
		for _, command := range commands[1:] { // none if the block is no transcript
			typed, prints, _ := strings.Cut(command, "\n")
			script += typed + "\necho '" + mark + "'\n"
			shown = append(shown, prints)
		}
	}
	if len(shown) == 0 {
		ts.Fatalf("%s has no commands", args[0])
	}
	ts.Check(ts.Exec("bash", "-c", script))
	printed := strings.Split(ts.ReadFile("stdout"), mark+"\n")
	for i, want := range shown {
		got := strings.ReplaceAll(printed[i], "\n\n", "\n") // etcdctl separates keys by empty lines
		if !matchesPage(want, got) {
			ts.Fatalf("the page shows\n%s\nand the command printed\n%s", want, got)
		}
	}
}

var pageBlock = regexp.MustCompile(`(?m)(?:^    .*\n)+`)

func matchesPage(want, got string) bool {
	pattern := regexp.QuoteMeta(strings.TrimSpace(want))
	pattern = strings.ReplaceAll(pattern, `\.\.\.`, `(?s:.*)`)
	pattern = regexp.MustCompile(`[A-Z2-7]{16}`).ReplaceAllString(pattern, `[A-Z2-7]{16}`)
	pattern = regexp.MustCompile(`\d{10,}`).ReplaceAllString(pattern, `\d+`)
	return regexp.MustCompile(`^` + pattern + `$`).MatchString(strings.TrimSpace(got))
}
