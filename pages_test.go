package imports

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const longestCell = 200 // characters

// entryPages are what a newcomer reads before the reference.
func entryPages(t *testing.T) (pages []string) {
	t.Helper()
	pages = []string{"README.md", "SECURITY.md", "docs/admin.md", "docs/kubernetes.md"}
	return slices.Concat(pages, pagesIn(t, "docs/start"), pagesIn(t, "docs/coming-from"))
}

func pagesIn(t *testing.T, dir string) []string {
	t.Helper()
	pages, err := filepath.Glob(dir + "/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%s has no page: %v", dir, err)
	}
	return pages
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
	all := func(page string) int { return len(strings.Fields(page)) }
	comingFrom := 0
	for _, name := range pagesIn(t, "docs/coming-from") {
		comingFrom += all(readPage(t, name))
	}
	atMost(t, "README.md", all(readPage(t, "README.md")), 900)
	atMost(t, "docs/coming-from", comingFrom, 1500)
	for _, name := range pagesIn(t, "docs/start") {
		atMost(t, name, all(withoutCode(readPage(t, name))), 600)
	}
}

func atMost(t *testing.T, name string, words, most int) {
	t.Helper()
	if words > most {
		t.Errorf("%s has %d words, more than %d", name, words, most)
	}
}

// withoutCode is a page without its commands, their output, and scripts.
func withoutCode(page string) string {
	var text strings.Builder
	fenced := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case fenced, strings.HasPrefix(line, "    "):
		default:
			text.WriteString(line)
		}
	}
	return text.String()
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
