package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A transcript is an indented block of a page that starts with a prompt: "$ " on node1, or
// "node2$ ". It shows commands, and what the terminal shows after each; "..." are lines left out.
type transcript struct {
	page     string
	commands []shownCommand
}

type shownCommand struct {
	host  int
	typed string
	shows []string // a line "^C..." is what follows the key Ctrl-C
}

var (
	block  = regexp.MustCompile(`(?m)(?:^    .*\n)+`)
	prompt = regexp.MustCompile(`^(?:node([12]))?\$ (.+)$`)
)

func transcriptsIn(page, text string) (found []transcript) {
	for _, b := range block.FindAllString(text, -1) {
		tr := transcript{page: page}
		indent := b[:len(b)-len(strings.TrimLeft(b, " "))] // more than four spaces in a list
		for line := range strings.Lines(b) {
			line = strings.TrimRight(strings.TrimPrefix(line, indent), "\n")
			if m := prompt.FindStringSubmatch(line); m != nil {
				host := 1
				if m[1] == "2" {
					host = 2
				}
				tr.commands = append(tr.commands, shownCommand{host: host, typed: m[2]})
			} else if n := len(tr.commands); n > 0 {
				tr.commands[n-1].shows = append(tr.commands[n-1].shows, line)
			}
		}
		if len(tr.commands) > 0 {
			found = append(found, tr)
		}
	}
	return found
}

// outputsIn are the commands of a page without prompts that are followed by what they print.
func outputsIn(t *testing.T, page, text string) (found []transcript) {
	t.Helper()
	for _, s := range stepsOf(t, text) {
		if len(s.shows) > 0 {
			found = append(found, transcript{page: page, commands: []shownCommand{s.shownCommand}})
		}
	}
	if len(found) == 0 {
		t.Errorf("%s shows what no command prints", page)
	}
	return found
}

// What the pages show on a terminal is what a terminal shows.
func TestTranscripts(t *testing.T) {
	// Not parallel: on a busy machine rank 0 waits for others for 10 s, which is one line more.
	c := newCluster(t, 2)
	c.startSlurm(1, 2)
	guide, err := filepath.Glob("../docs/guide/*.md")
	if err != nil || len(guide) == 0 {
		t.Fatalf("docs/guide has no page: %v", err)
	}
	pages := append(guide, "../README.md", "../docs/troubleshooting.md", "../docs/reference/environment.md")
	shown := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		page = filepath.Base(page)
		found := transcriptsIn(page, string(text))
		if page == "README.md" { // a start page: without prompts
			found = outputsIn(t, page, string(text))
		}
		shown += len(found)
		for _, tr := range found {
			t.Run(page+"/"+tr.commands[0].typed, func(t *testing.T) {
				c.newPlace(t).checkTranscript(tr)
			})
		}
	}
	if shown < 10 {
		t.Errorf("the pages have %d transcripts", shown)
	}
}

// checkTranscript runs the commands in the directory of a user who has rdzv in PATH and can log in
// to the other host. Commands on different hosts run at the same time.
func (p *clusterPlace) checkTranscript(tr transcript) {
	p.t.Helper()
	p.prepareHome()
	terminals := map[int]*terminal{}
	for _, command := range tr.commands {
		if terminals[command.host] == nil {
			terminals[command.host] = p.terminalOn(command.host)
		}
	}
	showAll(tr.commands, terminals)
}

// terminalOn opens a terminal on a host.
func (p *clusterPlace) terminalOn(host int) *terminal {
	p.t.Helper()
	env := append([]string{"env"}, p.env...) // sudo has its own PATH
	line := slices.Concat(p.cluster.slurm("on", strconv.Itoa(host)), env, bashLine)
	return openTerminal(p.place, p.dir("you"), line)
}

// showAll types commands in the terminals of their hosts and compares what these show. A command
// runs while the next ones run if they are for another host.
func showAll(commands []shownCommand, terminals map[int]*terminal) {
	var running []func()
	for i, command := range commands {
		if i > 0 && commands[i-1].host == command.host {
			running[i-1]()
			running[i-1] = func() {}
		}
		running = append(running, terminals[command.host].begin(command))
	}
	for _, wait := range running {
		wait()
	}
}

// begin types the command. The function that it returns compares what the terminal shows, to the
// next prompt, with what the page shows.
func (term *terminal) begin(c shownCommand) (wait func()) {
	term.t.Helper()
	term.typeAndWait(c.typed+"\n", c.typed+"\r\n")
	start := term.seen
	return func() {
		term.t.Helper()
		for i, line := range c.shows {
			if strings.HasPrefix(line, "^C") {
				term.waitForLines(start, c.shows[:i])
				term.typeKeys("\x03")
			}
		}
		term.waitFor(shellPrompt)
		want, got := general(term.place, c.shows), term.linesSince(start)
		if slices.Contains(want, "...") {
			want = slices.DeleteFunc(want, notCompared)
			got = slices.DeleteFunc(got, func(line string) bool { return !slices.Contains(want, line) })
			got = slices.Compact(got) // "..." stands for the same line again, too
		}
		if !slices.Equal(want, got) {
			term.t.Errorf("%s: the page shows\n%s\nthe terminal shows\n%s", c.typed,
				strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
	}
}

// waitForLines waits until the terminal shows lines of a page.
func (term *terminal) waitForLines(start int, lines []string) {
	term.t.Helper()
	want := slices.DeleteFunc(general(term.place, lines), notCompared)
	if !eventually(waitLimit, func() bool {
		return len(missing(want, term.linesSince(start))) == 0
	}) {
		term.t.Errorf("not shown before Ctrl-C: %q", missing(want, term.linesSince(start)))
	}
}

// notCompared tells lines of a page that stand for others, or for what follows Ctrl-C.
func notCompared(line string) bool { return line == "..." || line == "^C" }

// missing are the lines of want that got does not have.
func missing(want, got []string) (lines []string) {
	for _, line := range want {
		if !slices.Contains(got, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// linesSince are the lines since a position on the screen, without empty ones and the next prompt.
func (term *terminal) linesSince(start int) []string {
	term.mu.Lock()
	defer term.mu.Unlock()
	text := strings.ReplaceAll(strings.TrimSuffix(term.screen[start:], shellPrompt), "\r\n", "\n")
	return general(term.place, strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }))
}

// occasional is what srun prints if Slurm has not finished the job before, and what Open MPI 5's
// mpirun prints if the remote shell runs before mpirun has put it in a process group.
var occasional = regexp.MustCompile(
	`^srun: job \d+ (queued|has been allocated) |plm:ssh: Warning: setpgid\(`)

// variants replace what is different in each run, or in versions of the launchers.
var variants = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{timeOfLine, "rdzv: "}, // where a launcher reads stderr
	{regexp.MustCompile(`^(rdzv:   when     )\S+Z, (.*), rdzv \S+$`), "${1}DATE, $2, rdzv VERSION"},
	{regexp.MustCompile(`\bpid \d+(, \d+)*`), "pid N"},
	{regexp.MustCompile(`MASTER_PORT=\d+`), "MASTER_PORT=N"},
	{regexp.MustCompile(`:\d{5}/[\w-]{43}`), ":PORT/KEY"},
	{regexp.MustCompile(`\b[\d.]+m?s\b`), "TIME"},
	{regexp.MustCompile(`-[0-9a-f]{8}\b`), "-HASH"},
	{regexp.MustCompile(`^(\[1,\d\]<std(?:out|err)>:) `), "$1"},    // Open MPI 5
	{regexp.MustCompile(`^ *(Node|Executable): +`), "$1: "},        // indented by Open MPI 5
	{regexp.MustCompile(`^\[proxy:0:(1@node2\])`), "[proxy:$1"},    // MPICH 4.0
	{regexp.MustCompile(`\([\w/]+/launch\.c:\d+\)`), "(launch.c)"}, // of MPICH
	{regexp.MustCompile(`^(OMPI_ALLOW_\w+=1 )*mpirun(\.openmpi)?( --oversubscribe)?`), "mpirun"},
	{regexp.MustCompile(` (\S*/)?python3 examples/`), " PYTHON examples/"},
	{regexp.MustCompile(`\bloss \d+\.\d+$`), "loss N"},
	{regexp.MustCompile(`loss [\d.]+, [\d.]+% right`), "loss N, N% right"},
	{regexp.MustCompile(`\brdzv \S+ (commit \S+ )?go\S+ etcd \S+ `), "rdzv VERSION "}, // without git
	{regexp.MustCompile(`\brdzv-\S+\.whl\b`), "rdzv-VERSION.whl"},
	{regexp.MustCompile(`\bcontinuing after epoch \d+`), "continuing after epoch N"},
	{regexp.MustCompile(`\bparameters [0-9a-f]{16}`), "parameters HASH"},
}

// general replaces what is different in each run, and removes the echo of Ctrl-C, which may come
// before any line that is printed at that moment. Lines of rdzv keep their order, those of workers,
// which run at the same time, are sorted and follow.
func general(p *place, lines []string) (all []string) {
	var workers []string
	for _, line := range lines {
		if occasional.MatchString(line) {
			continue
		}
		line = strings.TrimSuffix(line, "\r") // two, while ssh has changed the terminal
		line = strings.ReplaceAll(line, filepath.Join(p.root, "you"), "/home/you")
		line = strings.ReplaceAll(line, filepath.Join(p.root, "bin"), "/home/you/bin")
		for _, v := range variants {
			line = v.pattern.ReplaceAllString(line, v.text)
		}
		if line != "^C" {
			line = strings.TrimPrefix(line, "^C")
		}
		if strings.HasPrefix(line, "rdzv:") {
			all = append(all, line)
		} else {
			workers = append(workers, line)
		}
	}
	slices.Sort(workers)
	return append(workers, all...)
}
