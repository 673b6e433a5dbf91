package repo

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdzv/internal/pagetest"
)

const longestCell = 200 // characters

// userPages are all that a user may meet; devPages are for those who change rdzv.
func userPages(t *testing.T) []string {
	return slices.Concat([]string{"README.md", "SECURITY.md", "CHANGELOG.md"}, pagesIn(t, "docs"))
}

func devPages(t *testing.T) []string {
	return slices.Concat([]string{"CONTRIBUTING.md", "examples/README.md"}, pagesIn(t, "dev"))
}

// pagesIn are the pages in a directory and below it, or the page of this name.
func pagesIn(t *testing.T, dir string) (pages []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
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

var generated = regexp.MustCompile(`(?s)<!-- generated: \w+ -->\n.*?<!-- end -->\n`)

func withoutGenerated(page string) string { return generated.ReplaceAllString(page, "") }

func TestTablesHaveShortCells(t *testing.T) {
	for _, name := range userPages(t) {
		for line := range strings.Lines(readPage(t, name)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "|") {
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

// helpLine is a flag as the help shows it, with the variable that can hold it.
var helpLine = regexp.MustCompile(`(?m)^ +(?:-\w, )?--[a-z-]+ .* RDZV_[A-Z_]+$`)

// The help is in the reference, where it is generated, and not pasted into other pages.
func TestPagesHaveNoHelp(t *testing.T) {
	generatedPage := readPage(t, "docs/reference/commands.md")
	if !helpLine.MatchString(generatedPage) {
		t.Error("docs/reference/commands.md does not have the help")
	}
	for _, name := range userPages(t) {
		page := withoutGenerated(readPage(t, name))
		if line := helpLine.FindString(page); line != "" || strings.Contains(page, "Usage: rdzv ") {
			t.Errorf("%s has a help: %q", name, line)
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
	if strings.Contains(readPage(t, "README.md"), "](dev/") {
		t.Error("README.md, which is for users, links to dev/")
	}
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noLetter = regexp.MustCompile(`[^a-z0-9_ -]`)
)

// Links lead to files and headings that exist.
func TestLinks(t *testing.T) {
	for _, name := range slices.Concat(userPages(t), devPages(t)) {
		for _, match := range link.FindAllStringSubmatch(withoutFenced(readPage(t, name)), -1) {
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

// Every page is reached from README.md by links.
func TestEveryPageIsLinked(t *testing.T) {
	reached := map[string]bool{"README.md": true}
	for next := []string{"README.md"}; len(next) > 0; next = next[1:] {
		for _, match := range link.FindAllStringSubmatch(withoutFenced(readPage(t, next[0])), -1) {
			file, _, _ := strings.Cut(match[1], "#")
			target := filepath.Join(filepath.Dir(next[0]), file)
			if strings.HasSuffix(file, ".md") && !strings.Contains(file, "://") && !reached[target] {
				reached[target] = true
				next = append(next, target)
			}
		}
	}
	for _, name := range slices.Concat(userPages(t), devPages(t)) {
		if !reached[name] {
			t.Errorf("no links lead from README.md to %s", name)
		}
	}
}

// withoutFenced is a page without what is between lines "```".
func withoutFenced(page string) string {
	return regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(page, "")
}

// pageNames are names of pages in comments, messages, scripts and tests.
var pageNames = regexp.MustCompile(`\b(?:docs|dev)/[a-z/-]+\.md\b`)

// What the sources say about a page is about one that exists.
func TestNamesOfPages(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "dist", "vendor"}, path) {
			return filepath.SkipDir
		}
		source := slices.Contains([]string{".go", ".py", ".txtar", ".sh", ".sbatch", ".toml", ".yaml", ""},
			filepath.Ext(path))
		if info, err := d.Info(); err != nil || !source || !info.Mode().IsRegular() || info.Size() > 1<<20 {
			return err
		}
		for _, name := range pageNames.FindAllString(readPage(t, path), -1) {
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s names %s, which does not exist", path, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
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

// The pages that a new user reads: what they show to type can be copied as it is.
func startPages(t *testing.T) []string { return append(pagesIn(t, "docs/start"), "README.md") }

// typed are the words with which the commands of these pages begin.
var typed = strings.Fields(`. [ cat cd cp export if job=$(sbatch kubectl make mkdir mpiexec.hydra mpirun pip podman
	python3 rdzv rm salloc sbatch scancel scontrol scp sed skopeo srun ssh sudo tail tar until ./train-mpi.sh`)

// Blocks of commands have no prompts and no output. Output and files are in blocks of their own.
func TestCommandsCanBeCopied(t *testing.T) {
	for _, name := range startPages(t) {
		for _, b := range pagetest.Blocks(readPage(t, name)) {
			commands := b.Commands()
			for _, c := range commands {
				words := strings.Fields(shownJoin.ReplaceAllString(c.Line, ""))
				if !strings.HasPrefix(c.Line, "#") && !slices.Contains(typed, words[0]) {
					t.Errorf("%s: a block of commands has the line %q: is it a command?", name, c.Line)
				}
			}
			if len(commands) == 0 {
				continue
			}
			shell := exec.CommandContext(t.Context(), "bash", "-n")
			shell.Stdin = strings.NewReader(b.Text)
			if out, err := shell.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", name, err, out, b.Text)
			}
		}
	}
}

var shownJoin = regexp.MustCompile(`^RDZV_JOIN=\S+ `)

// A file of examples/ that a page shows is shown as it is.
func TestFilesOfPages(t *testing.T) {
	shown := 0
	for _, name := range startPages(t) {
		for _, b := range pagetest.Blocks(readPage(t, name)) {
			if b.File == "" {
				continue
			}
			found, err := filepath.Glob(filepath.Join("examples/*", filepath.Base(b.File)))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range found {
				if shown++; b.Text != readPage(t, file) {
					t.Errorf("%s does not show %s as it is", name, file)
				}
			}
		}
	}
	if shown == 0 {
		t.Error("no page shows a file of examples/")
	}
}
