package integration

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdzv/internal/pagetest"
)

// startPages are the pages that lead a new user to a first job, with what the user has before.
var startPages = map[string]func(t *testing.T) *startPlace{
	"install.md":         newInstallPlace,
	"two-nodes.md":       func(t *testing.T) *startPlace { return newStartPlace(t, ownHomes).withEnvironment() },
	"slurm.md":           func(t *testing.T) *startPlace { return newStartPlace(t, oneHome).withEnvironment() },
	"mpi.md":             newMPIPlace,
	"training-script.md": func(t *testing.T) *startPlace { return newStartPlace(t, oneHome).withEnvironment() },
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
			checkWords(t, string(text))
			newPlace(t).follow(stepsOf(t, string(text)))
			logNotRun(t, pagetest.Blocks(string(text)))
		})
	}
}

// The commands of the reference give both nodes one token, which only the user can read.
func TestTokenIsCopied(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/reference/files.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## The token on nodes that share no home directory\n")
	section, _, _ = strings.Cut(section, "\n## ")
	p := newStartPlace(t, ownHomes).withEnvironment()
	activate := pageStep{shownCommand: shownCommand{host: 1, typed: ". venv/bin/activate"}, unseen: true}
	p.follow(append([]pageStep{activate}, stepsOf(t, section)...))
	var tokens [2]string
	for i, home := range p.homes {
		file := filepath.Join(home, ".config/rdzv/token")
		text, err := os.ReadFile(file)
		p.must(err)
		info, err := os.Stat(file)
		p.must(err)
		if tokens[i] = string(text); info.Mode() != 0o600 {
			t.Errorf("%s has the mode %v", file, info.Mode())
		}
	}
	if tokens[0] != tokens[1] || len(tokens[0]) < 16 {
		t.Errorf("the nodes have the tokens %q", tokens)
	}
}

// A pageStep is a command of a page, or a file that its reader writes.
type pageStep struct {
	shownCommand
	unseen     bool // it prepares what the page describes, and is not on it
	meanwhile  bool // the command before it still runs
	file, text string
}

// stepsOf are the steps of a page, with what each command shows.
func stepsOf(t *testing.T, page string) (steps []pageStep) {
	t.Helper()
	for _, b := range pagetest.Blocks(page) {
		if b.NotRun != "" {
			continue
		}
		if b.File != "" {
			steps = append(steps, pageStep{file: b.File, text: b.Text})
		}
		if b.Output {
			at := lastCommand(steps, b.Node)
			if at < 0 {
				t.Fatalf("no command prints this:\n%s", b.Text)
			}
			steps[at].shows = append(steps[at].shows, strings.Split(strings.TrimRight(b.Text, "\n"), "\n")...)
		}
		for _, c := range b.First {
			steps = append(steps, pageStep{shownCommand: shownCommand{host: c.Node, typed: c.Line}, unseen: true})
		}
		for _, c := range b.Commands() {
			steps = append(steps,
				pageStep{shownCommand: shownCommand{host: c.Node, typed: c.Line}, meanwhile: b.Meanwhile})
		}
	}
	return steps
}

// lastCommand is the index of the last command on a node, or on any if node is 0.
func lastCommand(steps []pageStep, node int) int {
	for i, s := range slices.Backward(steps) {
		if s.typed != "" && (node == 0 || s.host == node) {
			return i
		}
	}
	return -1
}

// follow does the steps, each when the ones before have ended, in one terminal on each host.
func (p *startPlace) follow(steps []pageStep) {
	p.t.Helper()
	terminals := map[int]*terminal{}
	running := map[int]func(){} // by host: waits for the end of a command and compares what it shows
	finish := func(hosts ...int) {
		for _, host := range hosts {
			if wait := running[host]; wait != nil {
				wait()
			}
			delete(running, host)
		}
	}
	for _, s := range steps {
		if finish(s.host); !s.meanwhile {
			finish(1, 2)
		}
		if s.file != "" {
			p.write(filepath.Join(p.homes[0], s.file), s.text, 0o600)
			continue
		}
		if terminals[s.host] == nil {
			terminals[s.host] = p.login(s.host)
		}
		if s.unseen {
			terminals[s.host].typeAndWait(s.typed+"\n", s.typed+"\r\n", shellPrompt)
			continue
		}
		s.typed = pasted(s.typed, terminals[1])
		running[s.host] = terminals[s.host].begin(s.shownCommand)
	}
	finish(1, 2)
}

var shownJoin = regexp.MustCompile(`RDZV_JOIN=\S+`)

// pasted is a command with the RDZV_JOIN that node1's terminal shows last in place of the page's.
func pasted(command string, node1 *terminal) string {
	if !shownJoin.MatchString(command) {
		return command
	}
	var shown []string
	if !eventually(waitLimit, func() bool {
		node1.mu.Lock()
		defer node1.mu.Unlock()
		shown = regexp.MustCompile(`RDZV_JOIN=\S+\s`).FindAllString(node1.screen, -1)
		return len(shown) > 0
	}) {
		node1.t.Fatal("node1 has printed no whole RDZV_JOIN")
	}
	return shownJoin.ReplaceAllLiteralString(command, strings.TrimSpace(shown[len(shown)-1]))
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
func logNotRun(t *testing.T, blocks []pagetest.Block) {
	run, not := 0, map[string]int{}
	for _, b := range blocks {
		if b.NotRun == "" {
			run += len(b.Commands())
		} else {
			not[b.NotRun] += len(b.Commands())
		}
	}
	t.Logf("%d commands were run", run)
	for _, reason := range slices.Sorted(maps.Keys(not)) {
		t.Logf("%d were not: %s", not[reason], reason)
	}
}
