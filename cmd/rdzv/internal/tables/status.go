package tables

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/visible"
	"rdzv/internal/nodelist"
	"rdzv/internal/plural"
	"rdzv/rdzv/status"
)

// The limits of a table of ranks: with more ranks than maxRows, those of a node that do the same
// share a row; a host name that is longer than maxHost is cut.
const (
	maxRows = 16
	maxHost = 32
)

// idle is how many cores a rank uses at most that only waits, for example in a sleep.
const idle = 0.1

// Status tells what the ranks of each job are doing: first what is known to be wrong, then a table
// of the ranks. agents adds the processes of rdzv to the table.
func Status(jobs []status.Job, to console.Destination, agents bool) string {
	b := newPage(to)
	for i, j := range jobs {
		if i > 0 {
			b.WriteString("\n")
		}
		b.plain("", jobHeader(j))
		for i, finding := range findings(j) {
			before := "\n"
			if i > 0 {
				before = ""
			}
			b.folded(before, finding)
		}
		if len(j.Ranks) > 0 {
			b.WriteString("\n")
			writeRanks(b, j.Ranks, agents)
		}
		writeNotes(b, j)
	}
	return b.String()
}

// jobHeader says in one line how the job is.
func jobHeader(j status.Job) string {
	name, since := "job "+visible.Line(cmp.Or(j.Name, j.Job)), " for "+seconds(j.Seconds)
	if j.UID != nil {
		name += " of user " + UserName(*j.UID)
	}
	name += ": "
	ranks := plural.Of(j.WorldSize, "rank") + " on " + plural.Of(j.Nodes, "node")
	if j.Attempt > 0 {
		ranks += fmt.Sprintf(", restart %d of %d", j.Attempt, j.Restarts)
	}
	switch {
	case j.State == status.Joining:
		return name + "waiting" + since + ": " + present(j)
	case j.State == status.Ending && j.WorldSize == 0:
		return name + "ending" + since + ": " + visible.Line(j.Ending)
	case j.State == status.Ending:
		return name + ranks + ", ending" + since + ": " + visible.Line(j.Ending)
	case j.State == status.Running, j.State == status.Restarting:
		return name + ranks + ", " + string(j.State) + since
	}
	return name + "no agent has answered: " + visible.Line(j.Text)
}

// present tells which nodes of a job that has not started are there, and how many are missing.
func present(j status.Job) string {
	var hosts []string
	for _, p := range j.Waiting {
		hosts = append(hosts, p.Host)
	}
	slices.Sort(hosts)
	noun := "node"
	if j.Launched {
		noun = "task"
	}
	are, there := "are", min(j.Present, j.Tasks)
	if there == 1 {
		are = "is"
	}
	text := fmt.Sprintf("%d of %s %s there", there, plural.Of(j.Tasks, noun), are)
	if len(hosts) > 0 {
		text += " (" + visible.Line(nodelist.Short(slices.Compact(hosts))) + ")"
	}
	switch missing := j.Tasks - there; missing {
	case 0:
		return text
	case 1:
		return text + ", 1 is missing"
	default:
		return text + fmt.Sprintf(", %d are missing", missing)
	}
}

// findings are what is known to be wrong, the likely causes first.
func findings(j status.Job) (lines []part) {
	in := func(state status.State) []status.Rank {
		return slices.DeleteFunc(slices.Clone(j.Ranks), func(r status.Rank) bool {
			return r.State != state
		})
	}
	add := func(ranks []status.Rank, one, several, text string) {
		if is := several; len(ranks) > 0 {
			if len(ranks) == 1 {
				is = one
			}
			lines = append(lines, part{console.Magenta, rankNames(ranks) + " " + is + " " + text})
		}
	}
	lines = tracebacks(j.Traced())
	add(in(status.Stopped), "is", "are", "stopped by a signal or a debugger")
	if len(j.Ranks) > 0 && j.Ranks[0].NotListening {
		add(j.Ranks[:1], "has", "have", "not reached init_process_group: it does not listen on "+
			"MASTER_PORT yet")
	}
	add(j.NotReached(), "has", "have", "not reached init_process_group: the others wait there")
	if line := collectivesLine(j.Collectives); line != "" {
		lines = append(lines, part{text: line})
	}
	add(in(status.Blocked), "waits", "wait", "for a file system or a device that has not answered yet")
	if j.Alone != "" {
		lines = append(lines, part{text: "only this node has answered: " + visible.Line(j.Alone)})
	} else if silent := in(status.NoAnswer); len(silent) > 0 {
		lines = append(lines, part{text: "no answer about " + rankNames(silent) +
			": rdzv is stopped there, or the node is overloaded or disconnected"})
	}
	if silence := j.Silence(); len(lines) == 0 && silence >= longSilence {
		lines = append(lines, part{text: "no rank has written anything for " + seconds(silence) +
			"; rdzv stacks shows where each one is"})
	}
	return lines
}

// longSilence is how long all ranks must have been silent, in seconds, to be worth a line.
const longSilence = 60

// writeNotes writes what else the table does not show at a glance.
func writeNotes(b *page, j status.Job) {
	if len(j.Spares) > 0 {
		var spares []string
		for _, p := range j.Spares {
			spares = append(spares, p.Host)
		}
		slices.Sort(spares)
		b.plain("\n", plural.Of(len(spares), "spare")+": "+visible.Line(nodelist.Short(spares)))
	}
	if j.LogDir != "" {
		b.WriteString("\nlog directory: " + visible.Line(j.LogDir) + "\n") // a path remains whole
	}
	isUnknown := func(row []status.Rank) bool { return outputOf(row) == unknown }
	if slices.ContainsFunc(rows(j.Ranks), isUnknown) {
		b.plain("\n", `"`+unknown+`": not known; start the job with --tag or --log-dir to see it`)
	}
}

// maxTracebacks is how many tracebacks are named.
const maxTracebacks = 4

// tracebacks name the ranks that run although they have printed a traceback.
func tracebacks(traced []status.Rank) (lines []part) {
	for i, r := range traced {
		if i == maxTracebacks {
			return append(lines, part{text: plural.Of(len(traced)-i, "more rank") +
				" printed a traceback, too"})
		}
		lines = append(lines, part{console.Magenta, fmt.Sprintf(
			"%s printed a traceback %s ago and is still running: %s", rankNames([]status.Rank{r}),
			seconds(r.Traceback.Seconds), visible.Line(r.Traceback.Exception))})
	}
	return lines
}

// rankNames is "rank 5 (node2)" or "ranks 4-7 (node2, node3)".
func rankNames(ranks []status.Rank) string {
	var hosts []string
	for _, r := range ranks {
		if r.Host != "" && !slices.Contains(hosts, r.Host) {
			hosts = append(hosts, r.Host)
		}
	}
	names := "ranks " + ranges(numbers(ranks))
	if len(ranks) == 1 {
		names = "rank " + ranges(numbers(ranks))
	}
	if len(hosts) > 0 {
		names += " (" + visible.Line(nodelist.Short(hosts)) + ")"
	}
	return names
}

func numbers(ranks []status.Rank) []int {
	list := make([]int, len(ranks))
	for i, r := range ranks {
		list[i] = r.Rank
	}
	return list
}

// writeRanks writes the table.
func writeRanks(b *page, ranks []status.Rank, agents bool) {
	launched := func(r status.Rank) bool { return r.Collectives != nil }
	grouped := rows(ranks)
	columns := []column{
		{"RANK", func(row []status.Rank) string { return ranges(numbers(row)) }},
		{"HOST", hostOf}, {"PID", pidOf}, {state, stateOf},
		{"SINCE", func(row []status.Rank) string { return span(row, seconds, since) }},
		{"INIT", initOf}, {"OUTPUT", outputOf},
		{"CPU", func(row []status.Rank) string {
			return span(row, percent, func(r status.Rank) *float64 { return r.CPU })
		}},
	}
	if slices.ContainsFunc(ranks, func(r status.Rank) bool { return r.GPU != nil }) {
		columns = append(columns, column{"GPU", gpuUse}, column{"GPU MEM", gpuMemory})
	}
	if slices.ContainsFunc(ranks, launched) {
		columns = append(columns, column{"COLL", launchedBy})
	}
	if agents {
		columns = append(columns, column{"AGENT", agentOf})
	}
	columns = withLastLines(columns, ranks, grouped, b.width)
	writeAligned(b, columns, grouped)
}

// column is one of the table: its header, and what it has of the ranks that share a row.
type column struct {
	header string
	of     func(row []status.Rank) string
}

// state is the header of the column whose values are coloured.
const state = "STATE"

// width is that of the longest value.
func (c column) width(grouped [][]status.Rank) int {
	width := utf8.RuneCountInString(c.header)
	for _, row := range grouped {
		width = max(width, utf8.RuneCountInString(c.of(row)))
	}
	return width
}

// gap is how many columns are between two values.
const gap = "  "

func writeAligned(b *page, columns []column, grouped [][]status.Rank) {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = c.width(grouped)
	}
	write := func(value func(column) string, colour console.Colour) {
		line := ""
		for i, c := range columns {
			text := value(c)
			after := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)) + gap
			if c.header == state {
				text = b.to.Paint(colour, text)
			}
			line += text + after
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	write(func(c column) string { return c.header }, "")
	for _, row := range grouped {
		write(func(c column) string { return c.of(row) }, colourOf(row[0]))
	}
}

// colourOf is that of the state of a rank: red if something is wrong.
func colourOf(r status.Rank) console.Colour {
	failed := r.Signal != 0 || r.ExitCode != nil && *r.ExitCode != 0
	if failed || r.State == status.Blocked || r.State == status.Stopped || r.State == status.NoAnswer {
		return console.Red
	}
	return ""
}

// minLastLine is how many columns a table has for the last lines of ranks, or none.
const minLastLine = 20

// withLastLines adds a column with what single ranks have written last, as far as a line has room.
func withLastLines(
	columns []column, ranks []status.Rank, grouped [][]status.Rank, width int,
) []column {
	room := width
	for _, c := range columns {
		room -= c.width(grouped) + len(gap)
	}
	wrote := func(r status.Rank) bool { return r.LastLine != "" }
	if room < minLastLine || !slices.ContainsFunc(ranks, wrote) {
		return columns
	}
	return append(columns, column{"LAST LINE", func(row []status.Rank) string {
		if len(row) > 1 {
			return ""
		}
		text := []rune(visible.Text(row[0].LastLine))
		if len(text) > room {
			text = append(text[:room-3], []rune("...")...)
		}
		return string(text)
	}})
}

// gpuUse is how much the GPUs of these ranks are used: "93%".
func gpuUse(row []status.Rank) string {
	return span(row, percent, func(r status.Rank) *float64 {
		if r.GPU == nil {
			return nil
		}
		return &r.GPU.Use
	})
}

// gpuMemory is how much of their memory is used: "70/80G", "-" if that is not known. The GPUs of a
// node have the same size.
func gpuMemory(row []status.Rank) string {
	used := span(row, gibibytes, func(r status.Rank) *float64 {
		if r.GPU == nil {
			return nil
		}
		return new(float64(r.GPU.MemoryUsed))
	})
	i := slices.IndexFunc(row, func(r status.Rank) bool { return r.GPU != nil })
	if i < 0 {
		return used
	}
	return used + "/" + gibibytes(float64(row[i].GPU.Memory)) + "G"
}

func gibibytes(bytes float64) string { return fmt.Sprintf("%.0f", bytes/(1<<30)) }

// pidOf is the process of a rank, "-" if there is none, or if these are several ranks.
func pidOf(row []status.Rank) string {
	if len(row) > 1 || row[0].PID == 0 {
		return "-"
	}
	return strconv.Itoa(row[0].PID)
}

func hostOf(row []status.Rank) string {
	host := []rune(cmp.Or(visible.Line(row[0].Host), "-"))
	if len(host) > maxHost {
		host = append(host[:maxHost-3], []rune("...")...)
	}
	return string(host)
}

// agentOf is the pid of the agent of these ranks, "-" if they have several.
func agentOf(ranks []status.Rank) string {
	for _, r := range ranks {
		if r.AgentPID != ranks[0].AgentPID {
			return "-"
		}
	}
	if ranks[0].AgentPID == 0 {
		return "-"
	}
	return strconv.Itoa(ranks[0].AgentPID)
}

// rows are the ranks that share a row.
func rows(ranks []status.Rank) (rows [][]status.Rank) {
	for _, r := range ranks {
		same := func(row []status.Rank) bool { return alike(row[0], r) }
		if i := slices.IndexFunc(rows, same); i >= 0 && len(ranks) > maxRows {
			rows[i] = append(rows[i], r)
		} else {
			rows = append(rows, []status.Rank{r})
		}
	}
	return rows
}

// alike tells whether two ranks do the same on the same node.
func alike(a, b status.Rank) bool {
	waits := func(r status.Rank) bool { return r.CPU == nil || *r.CPU < idle }
	one, other := []status.Rank{a}, []status.Rank{b}
	return a.Host == b.Host && stateOf(one) == stateOf(other) && initOf(one) == initOf(other) &&
		waits(a) == waits(b)
}

func stateOf(row []status.Rank) string {
	switch r := row[0]; {
	case r.State == status.NoAnswer:
		return "no answer"
	case r.Signal != 0:
		return r.Signal.String()
	case r.ExitCode != nil:
		return fmt.Sprintf("exit %d", *r.ExitCode)
	}
	return string(row[0].State)
}

func initOf(row []status.Rank) string {
	switch r := row[0]; {
	case r.Init == nil:
		return "-"
	case *r.Init:
		return "yes"
	}
	return "no"
}

// outputOf is how long ago ranks wrote something, "?" if that is not known.
func outputOf(row []status.Rank) string {
	known := span(row, seconds, func(r status.Rank) *float64 { return r.Output })
	if known == "-" && slices.ContainsFunc(row, outputUnknown) {
		return unknown
	}
	return known
}

// unknown replaces a value that may exist. "-" says that there is none.
const unknown = "?"

// outputUnknown tells whether a rank may have written something that its agent does not read.
func outputUnknown(r status.Rank) bool {
	return r.PID > 0 && r.State != status.NoAnswer && r.Output == nil && !r.AllOutput
}

// launchedBy is how many collective operations these ranks have launched: "6649-6650".
func launchedBy(row []status.Rank) string {
	count := func(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) }
	return span(row, count, func(r status.Rank) *float64 {
		if r.Collectives == nil {
			return nil
		}
		return new(float64(*r.Collectives))
	})
}

// since is nil if it is not known since when a rank is in its state.
func since(r status.Rank) *float64 {
	if r.State == status.NoAnswer || r.State == status.Waiting {
		return nil
	}
	return &r.Seconds
}

// span is "2s-40s" of what ranks have of something, "-" if they have nothing.
func span(
	ranks []status.Rank, format func(float64) string, of func(status.Rank) *float64,
) string {
	var values []float64
	for _, r := range ranks {
		if v := of(r); v != nil {
			values = append(values, *v)
		}
	}
	if len(values) == 0 {
		return "-"
	}
	least, most := format(slices.Min(values)), format(slices.Max(values))
	if least == most {
		return most
	}
	return least + "-" + most
}

// seconds is a duration in its two largest units: 12s, 3m12s, 5h3m, 3d4h.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < time.Hour:
		return d.Truncate(time.Second).String()
	case d < 24*time.Hour:
		return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

func percent(cores float64) string { return fmt.Sprintf("%.0f%%", 100*cores) }
