package tables

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
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
// of the ranks. Its lines have a width, see [console.Screen.Width]. agents adds the processes of
// rdzv to the table.
func Status(jobs []status.Job, width int, agents bool) string {
	b := page{width: width}
	for i, j := range jobs {
		if i > 0 {
			b.WriteString("\n")
		}
		writeFolded(&b, "", jobHeader(j))
		for i, line := range findings(j) {
			before := "\n"
			if i > 0 {
				before = ""
			}
			writeFolded(&b, before, line)
		}
		if len(j.Ranks) > 0 {
			b.WriteString("\n")
			writeRanks(&b, j.Ranks, agents)
		}
		writeNotes(&b, j)
	}
	return b.String()
}

// jobHeader says in one line how the job is.
func jobHeader(j status.Job) string {
	name, since := "job "+visible.Line(cmp.Or(j.Name, j.Job)), " for "+seconds(j.Seconds)
	if j.UID != nil {
		name += " of user " + console.UserName(*j.UID)
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
func findings(j status.Job) (lines []string) {
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
			lines = append(lines, rankNames(ranks)+" "+is+" "+text)
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
		lines = append(lines, line)
	}
	add(in(status.Blocked), "waits", "wait", "for a file system or a device that has not answered yet")
	if j.Alone != "" {
		lines = append(lines, "only this node has answered: "+visible.Line(j.Alone))
	} else if silent := in(status.NoAnswer); len(silent) > 0 {
		lines = append(lines, "no answer about "+rankNames(silent)+
			": rdzv is stopped there, or the node is overloaded or disconnected")
	}
	if silence := j.Silence(); len(lines) == 0 && silence >= longSilence {
		lines = append(lines, "no rank has written anything for "+seconds(silence)+
			"; rdzv stacks shows where each one is")
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
		writeFolded(b, "\n", plural.Of(len(spares), "spare")+": "+visible.Line(nodelist.Short(spares)))
	}
	if j.LogDir != "" {
		b.WriteString("\nlog directory: " + visible.Line(j.LogDir) + "\n") // a path remains whole
	}
	isUnknown := func(row []status.Rank) bool { return outputOf(row) == unknown }
	if slices.ContainsFunc(rows(j.Ranks), isUnknown) {
		writeFolded(b, "\n", `"`+unknown+`": not known; start the job with --tag or --log-dir to see it`)
	}
}

// maxTracebacks is how many tracebacks are named.
const maxTracebacks = 4

// tracebacks name the ranks that run although they have printed a traceback.
func tracebacks(traced []status.Rank) (lines []string) {
	for i, r := range traced {
		if i == maxTracebacks {
			return append(lines, plural.Of(len(traced)-i, "more rank")+" printed a traceback, too")
		}
		lines = append(lines, fmt.Sprintf("%s printed a traceback %s ago and is still running: %s",
			rankNames([]status.Rank{r}), seconds(r.Traceback.Seconds), visible.Line(r.Traceback.Exception)))
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
	coll := slices.ContainsFunc(ranks, launched)
	grouped := rows(ranks)
	table := [][]string{{"RANK", "HOST", "PID", "STATE", "SINCE", "INIT", "OUTPUT", "CPU"}}
	for _, row := range grouped {
		table = append(table, []string{
			ranges(numbers(row)), hostOf(row[0]), pidOf(row), stateOf(row[0]),
			span(row, seconds, func(r status.Rank) *float64 { return since(r) }),
			initOf(row[0]),
			outputOf(row),
			span(row, percent, func(r status.Rank) *float64 { return r.CPU }),
		})
	}
	column := func(header string, of func([]status.Rank) string) {
		table[0] = append(table[0], header)
		for i, row := range grouped {
			table[i+1] = append(table[i+1], of(row))
		}
	}
	if slices.ContainsFunc(ranks, func(r status.Rank) bool { return r.GPU != nil }) {
		column("GPU", gpuUse)
		column("GPU MEM", gpuMemory)
	}
	if coll {
		column("COLL", launchedBy)
	}
	if agents {
		column("AGENT", agentOf)
	}
	lines := aligned(table)
	if slices.ContainsFunc(ranks, func(r status.Rank) bool { return r.LastLine != "" }) {
		lines = withLastLines(lines, grouped, b.width)
	}
	for _, line := range lines {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// aligned are the lines of a table, all of the same width.
func aligned(table [][]string) []string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, cells := range table {
		fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
	}
	w.Flush() // a strings.Builder does not fail
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// minLastLine is how many columns a table has for the last lines of ranks, or none.
const minLastLine = 20

// withLastLines adds what single ranks have written last to the lines of their table, as far as a
// line has room.
func withLastLines(lines []string, grouped [][]status.Rank, width int) []string {
	room := width - utf8.RuneCountInString(lines[0])
	if room < minLastLine {
		return lines
	}
	lines[0] += "LAST LINE"
	for i, row := range grouped {
		if len(row) > 1 {
			continue
		}
		text := []rune(visible.Text(row[0].LastLine))
		if len(text) > room {
			text = append(text[:room-3], []rune("...")...)
		}
		lines[i+1] += string(text)
	}
	return lines
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

func hostOf(r status.Rank) string {
	host := []rune(cmp.Or(visible.Line(r.Host), "-"))
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
	return a.Host == b.Host && stateOf(a) == stateOf(b) && initOf(a) == initOf(b) &&
		waits(a) == waits(b)
}

func stateOf(r status.Rank) string {
	switch {
	case r.State == status.NoAnswer:
		return "no answer"
	case r.Signal != 0:
		return r.Signal.String()
	case r.ExitCode != nil:
		return fmt.Sprintf("exit %d", *r.ExitCode)
	}
	return string(r.State)
}

func initOf(r status.Rank) string {
	switch {
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
