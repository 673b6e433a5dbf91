package imports

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const longestCell = 200 // characters

// entryPages are what a newcomer reads before the reference.
func entryPages(t *testing.T) (pages []string) {
	t.Helper()
	comingFrom, err := filepath.Glob("docs/coming-from/*.md")
	if err != nil || len(comingFrom) == 0 {
		t.Fatalf("docs/coming-from has no page: %v", err)
	}
	return append([]string{"README.md", "SECURITY.md"}, comingFrom...)
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestEntryPagesAreShort(t *testing.T) {
	words := map[string]int{}
	for _, name := range entryPages(t) {
		if filepath.Dir(name) == "." {
			words[name] = len(strings.Fields(readPage(t, name)))
		} else {
			words["docs/coming-from"] += len(strings.Fields(readPage(t, name)))
		}
	}
	for name, most := range map[string]int{"README.md": 900, "docs/coming-from": 1500} {
		if words[name] > most {
			t.Errorf("%s has %d words, more than %d", name, words[name], most)
		}
	}
}

func TestEntryPagesHaveShortCells(t *testing.T) {
	for _, name := range entryPages(t) {
		for line := range strings.Lines(readPage(t, name)) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			for cell := range strings.SplitSeq(line, " | ") {
				if n := len([]rune(strings.Trim(cell, "| \n"))); n > longestCell {
					t.Errorf("%s: a cell has %d characters, more than %d: %s", name, n, longestCell, cell)
				}
			}
		}
	}
}

// README.md names the two commands with which a newcomer begins.
func TestReadmeNamesFirstCommands(t *testing.T) {
	for _, command := range []string{"\n    make demo ", "\n    make test "} {
		if !strings.Contains(readPage(t, "README.md"), command) {
			t.Errorf("README.md does not have the line %q", command)
		}
	}
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noLetter = regexp.MustCompile(`[^a-z0-9_ -]`)
)

// Links lead to files and headings that exist.
func TestLinksOfEntryPages(t *testing.T) {
	for _, name := range entryPages(t) {
		for _, match := range link.FindAllStringSubmatch(readPage(t, name), -1) {
			file, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			target := filepath.Join(filepath.Dir(name), file)
			if file == "" {
				target = name
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere: %v", name, match[1], err)
			} else if anchor != "" && !anchors(readPage(t, target))[anchor] {
				t.Errorf("%s: %s has no heading %q", name, target, anchor)
			}
		}
	}
}

// anchors are the names that GitHub gives to the headings of a page.
func anchors(page string) map[string]bool {
	names := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		name := noLetter.ReplaceAllString(strings.ToLower(match[1]), "")
		names[strings.ReplaceAll(name, " ", "-")] = true
	}
	return names
}
