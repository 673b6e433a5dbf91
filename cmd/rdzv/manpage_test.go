package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"rdzv/cmd/rdzv/internal/flags"
	"rdzv/internal/pagetest"
)

// The manual page is the help of all commands, and sections behind them in the order of
// man-pages(7). It has no date, so that it is the same whenever it is made. What it shows can be
// copied: no word is divided, and characters are not replaced by similar ones.
func TestGeneratedManual(t *testing.T) {
	usage, description := cutUsage(overviewHelp(allCommands()))
	text, status := strings.Builder{}, ""
	text.WriteString(markdown(description))
	for _, c := range allCommands() {
		if c.Hidden {
			continue
		}
		usage, prose := cutUsage(c.Long)
		if c.Name() == "exec" {
			prose, status, _ = strings.Cut(prose, "Exit status")
		}
		before, after, _ := strings.Cut(prose, "{flags}\n")
		text.WriteString("# rdzv " + c.Name() + "\n\n" + escaped(usage) + "\n\n" + markdown(before))
		for _, g := range c.groups {
			text.WriteString(groupMarkdown(g))
		}
		text.WriteString("\n" + markdown(after))
	}
	text.WriteString("# EXIT STATUS\n\n" + markdown("That of rdzv exec"+status) +
		"That of each other command is described with it.\n" + manualSections)
	name, arguments, _ := strings.Cut(usage, " ")
	page := &cobra.Command{
		Use: name + " " + escaped(arguments), Short: "run a PyTorch program as one distributed job",
		Long: text.String(), DisableAutoGenTag: true, DisableFlagsInUseLine: true,
	}
	page.Flags().Bool("help", false, "")
	fatalIf(t, page.Flags().MarkHidden("help")) // cobra would add it to the page
	header := &doc.GenManHeader{Date: &time.Time{}, Source: "rdzv {version}", Manual: "User Commands"}
	var b strings.Builder
	fatalIf(t, doc.GenMan(page, header, &b))
	pagetest.File(t, "rdzv.1", strings.NewReplacer(
		".nh\n", "", `"Jan 0001"`, `""`, `"User Commands"`, "\"User Commands\"\n.nh\n.ad l",
		"\n.EE\n", "\n.EE\n.nh\n", // groff's EE divides words again
		"-", `\-`, "'", `\(aq`, "~", `\(ti`, "`", `\(ga`, "^", `\(ha`,
	).Replace(b.String()))
}

// cutUsage splits a help behind its usage.
func cutUsage(help string) (usage, rest string) {
	usage, rest, _ = strings.Cut(strings.TrimPrefix(help, "Usage: "), "\n\n")
	return usage, rest
}

// groupMarkdown is a group as a section of the manual page.
func groupMarkdown(g flags.Group) string {
	if g.Brief {
		return "\n" + markdown(g.Help())
	}
	text := "\n"
	if g.Title != "" {
		text += "### " + escaped(g.Title) + "\n\n"
	}
	for _, r := range g.Rows {
		variable := ""
		if !g.NoEnv {
			variable = " " + flags.Variable(r.Name())
		}
		text += entry(r.Usage, r.Text+"."+variable)
	}
	return text + markdown(strings.ReplaceAll("\n"+g.Note, "\n    ", "\n"))
}

// entry is an entry of a list.
func entry(name, text string) string {
	return "**" + escaped(name) + "**\n: " + escaped(text) + "\n\n"
}

// markdown converts paragraphs of a help: lines that are indented keep their form.
func markdown(prose string) string {
	var b strings.Builder
	indented := false
	for line := range strings.Lines(prose) {
		was := indented
		if line != "\n" {
			indented = strings.HasPrefix(line, "    ")
		}
		switch {
		case line == "\n":
		case indented && !was:
			b.WriteString("\n")
		case !indented:
			line = escaped(line)
		}
		b.WriteString(line)
	}
	return b.String() + "\n"
}

var special = regexp.MustCompile("[][\\\\`*_<>#|~{}]")

// escaped is text without markup.
func escaped(text string) string { return special.ReplaceAllString(text, `\$0`) }

// manualSections are those behind EXIT STATUS.
const manualSections = `
# ENVIRONMENT

Each flag of rdzv exec has a variable: --join-timeout is RDZV_JOIN_TIMEOUT.
A flag overrides its variable, and both override the launcher.
rdzv exec sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT and others
for each worker; rdzv env prints them.

These variables have no flag:

**RDZV_TOKEN**
: the token by which nodes prove that they belong to the same user.

**RDZV_JOIN**
: the address and the key in the command that a waiting node prints for the other nodes.

**RDZV_STORE_USER**
: NAME:PASSWORD of a user of the etcd cluster that is the store.

**ETCDCTL_USER, ETCDCTL_PASSWORD**
: the same, if RDZV_STORE_USER is not set.

**ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY**
: the files of --store-ca, --store-cert and --store-key, if these are not given.

**RDZV_TERMINATION_LOG**
: in a pod, the path of the termination log, or off.

**XDG_RUNTIME_DIR, TMPDIR**
: where the files of a running job are.

**NO_COLOR**
: no colours on a terminal.

# FILES

**~/.config/rdzv/token**
: the user's token, mode 0600; rdzv creates it when a job first needs it.

**rdzv-UID**
: in XDG_RUNTIME_DIR, TMPDIR or /tmp: the files of the store while a job runs.

**DIR/RUN/attempt-N/rank-00003.log**
: with --log-dir DIR: the output of rank 3. DIR/latest is a link to DIR/RUN.

**stall-K.txt, nccl_trace_rank_R**
: beside the logs, when the job stalls: the stacks of all ranks, and torch's record of NCCL operations.

**FILE of --report**
: how the job ended, as JSON; written at the end.

**FILE of --events**
: the events of the job, as JSON lines, appended.

**~/.cache/rdzv/BUILD/rdzv**
: on the hosts of --hosts: the program. What was unused for 30 days is removed.

**/dev/termination-log**
: in a pod: why the job failed.

# EXAMPLES

One worker for each GPU of this node:

    rdzv exec -- python3 main.py

One job of all tasks of a launcher:

    mpirun --hostfile hosts -np 4 rdzv exec -- python3 main.py
    srun -N2 --ntasks-per-node=8 rdzv exec -- python3 main.py

Two nodes without a launcher, the same command on both:

    rdzv exec --nodes 2 --store node1 -- python3 main.py

Restart the job up to three times, and keep the output of each rank:

    rdzv exec --max-restarts 3 --log-dir logs -- python3 main.py

Look for what would keep the job from running, before it runs:

    srun -N2 rdzv check -- python3 main.py

What do the ranks of a running job do, and where are they?

    rdzv status
    rdzv stacks
`

// The manual page has all commands and their flags, the sections of man-pages(7) in their order,
// exec's exit status once, and what the reference says of variables without a flag and of files.
func TestSectionsOfManual(t *testing.T) {
	man := manual
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
		if !strings.Contains(text["ENVIRONMENT"], "\n\\fB"+names+"\\fP\n") {
			t.Errorf("ENVIRONMENT does not have %q", names)
		}
	}
	files := rowsOf(t, "../../docs/reference/files.md", "# Files")
	for _, row := range files {
		name := strings.Fields(strings.ReplaceAll(row, "`", ""))
		if !strings.Contains(text["FILES"], "\n\\fB"+strings.TrimRight(name[0], ",")) {
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
