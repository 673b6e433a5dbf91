package integration

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// startPages are the pages that lead a new user to a first job, with what the user has before.
var startPages = map[string]func(t *testing.T) *startPlace{
	"install.md":   newInstallPlace,
	"two-nodes.md": func(t *testing.T) *startPlace { return newStartPlace(t, ownHomes).withEnvironment() },
	"slurm.md":     func(t *testing.T) *startPlace { return newStartPlace(t, oneHome).withEnvironment() },
	"mpi.md":       newMPIPlace,
}

// The commands of a page of docs/start run as they are written, one after another, and show what the
// page shows.
func TestStartPages(t *testing.T) { // beside no other test: see TestTranscripts
	for page, newPlace := range startPages {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("../docs/start", page))
			if err != nil {
				t.Fatal(err)
			}
			blocks := startBlocks(t, string(text))
			checkWords(t, string(text))
			p := newPlace(t)
			terminals := map[int]*terminal{}
			for _, b := range blocks {
				p.run(b, terminals)
			}
			logNotRun(t, blocks)
		})
	}
}

// A startBlock is a code block of a page. HTML comments, which readers do not see, may precede it:
// why it is not run here, or commands that make the state in which it is shown.
type startBlock struct {
	transcript
	prepare []shownCommand
	notRun  string
}

var (
	comment = regexp.MustCompile(`^ *<!-- (not run|first, on node([12])): (.+) -->$`)
)

// startBlocks are the code blocks of a page. Each one shows commands, or a comment says why not.
func startBlocks(t *testing.T, page string) (blocks []startBlock) {
	t.Helper()
	var next startBlock
	for _, part := range regexp.MustCompile(`(?m)^ *<!-- .* -->$|(?:^ {4,}.*\n)+`).FindAllString(page, -1) {
		if m := comment.FindStringSubmatch(part); m != nil && m[2] == "" {
			next.notRun = m[3]
			continue
		} else if m != nil {
			next.prepare = append(next.prepare, shownCommand{host: int(m[2][0] - '0'), typed: m[3]})
			continue
		}
		if found := transcriptsIn("", part); len(found) > 0 {
			next.transcript = found[0]
		} else if next.notRun == "" {
			t.Errorf("this block shows no commands after prompts, and no comment says why:\n%s", part)
		}
		blocks, next = append(blocks, next), startBlock{}
	}
	return blocks
}

// run runs the commands of a block, each in the terminal of its host.
func (p *startPlace) run(b startBlock, terminals map[int]*terminal) {
	p.t.Helper()
	if b.notRun != "" {
		return
	}
	for _, c := range slices.Concat(b.prepare, b.commands) {
		if terminals[c.host] == nil {
			terminals[c.host] = p.login(c.host)
		}
	}
	for _, c := range b.prepare {
		terminals[c.host].typeAndWait(c.typed+"\n", c.typed+"\r\n", shellPrompt)
	}
	showAll(b.commands, terminals)
}

// checkWords checks that a page is short: it is read from its beginning to its end.
func checkWords(t *testing.T, page string) {
	t.Helper()
	const most = 600
	prose := regexp.MustCompile(`(?m)^ {4,}.*\n|<!--.*-->`).ReplaceAllString(page, "")
	if n := len(strings.Fields(prose)); n > most {
		t.Errorf("the page has %d words without its code blocks, want at most %d", n, most)
	}
}

// logNotRun prints how many commands were run, and how many were not, by their reason.
func logNotRun(t *testing.T, blocks []startBlock) {
	run, not := 0, map[string]int{}
	for _, b := range blocks {
		if b.notRun == "" {
			run += len(b.commands)
		} else {
			not[b.notRun] += len(b.commands)
		}
	}
	t.Logf("%d commands were run", run)
	for _, reason := range slices.Sorted(maps.Keys(not)) {
		t.Logf("%d were not: %s", not[reason], reason)
	}
}
