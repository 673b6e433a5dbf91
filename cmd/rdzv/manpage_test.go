package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdzv/cmd/rdzv/internal/manpage"
)

// The manual page has the sections of man-pages(7) in their order, exec's exit status once, and what
// the reference says of variables without a flag and of files.
func TestSectionsOfManual(t *testing.T) {
	commands := allCommands().listed()
	man := manpage.Of("1.0", overviewHelp(allCommands()), commands)
	if found := regexp.MustCompile(`\.PP\n(\.[^RB].*)`).FindString(man); found != "" {
		t.Errorf("it has the empty paragraph %q", found)
	}
	man = strings.NewReplacer(`\-`, "-", `\(ti`, "~", `\(aq`, "'").Replace(man)
	var titles []string
	text := map[string]string{}
	for _, part := range strings.Split(man, "\n.SH ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		if title = strings.Trim(title, `"`); !strings.HasPrefix(title, "rdzv ") {
			titles = append(titles, title)
		}
		text[title] = body
	}
	want := []string{
		"NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES",
	}
	if !slices.Equal(titles, want) {
		t.Errorf("it has the sections %q, want %q", titles, want)
	}
	if strings.Contains(text["rdzv exec"], "Exit status") ||
		!strings.Contains(text["EXIT STATUS"], "124      not all agents joined") {
		t.Errorf("EXIT STATUS is %q", text["EXIT STATUS"])
	}
	environment := rowsOf(t, "../../docs/reference/environment.md", "These variables have no flag:")
	for _, names := range environment {
		if !strings.Contains(text["ENVIRONMENT"], "\n.B "+names+"\n") {
			t.Errorf("ENVIRONMENT does not have %q", names)
		}
	}
	files := rowsOf(t, "../../docs/reference/files.md", "# Files")
	for _, row := range files {
		name := strings.Fields(strings.ReplaceAll(row, "`", ""))
		if !strings.Contains(text["FILES"], ".B "+strings.TrimRight(name[0], ",")) {
			t.Errorf("FILES does not have %q", row)
		}
	}
	if len(environment) < 5 || len(files) < 7 {
		t.Errorf("the reference has %d variables and %d files", len(environment), len(files))
	}
}

// rowsOf are the first cells of the table that follows a line of a page.
func rowsOf(t *testing.T, file, line string) (cells []string) {
	t.Helper()
	page, err := os.ReadFile(file)
	fatalIf(t, err)
	_, table, _ := strings.Cut(string(page), line+"\n\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		cells = append(cells, cell)
	}
	return cells[min(len(cells), 2):]
}
