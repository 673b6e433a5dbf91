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

// Status tells what the ranks of each job are doing. Texts below the table of ranks have lines
// of a width, see [console.Screen.Width].
func Status(jobs []status.Job, width int) string {
	b := page{width: width}
	for i, j := range jobs {
		if i > 0 {
			b.WriteString("\n")
		}
		writeFolded(&b, "", jobHeader(j))
		if len(j.Ranks) > 0 {
			b.WriteString("\n")
			writeRanks(&b, j.Ranks)
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
		return fmt.Sprintf("%s%d of %s joined, waiting for the others%s",
			name, j.Joined, tasks(j.Tasks, j.Launched), since)
	case j.State == status.Ending && j.WorldSize == 0:
		return name + "ending" + since + ": " + visible.Line(j.Ending)
	case j.State == status.Ending:
		return name + ranks + ", ending" + since + ": " + visible.Line(j.Ending)
	case j.State == status.Running, j.State == status.Restarting:
		return name + ranks + ", " + string(j.State) + since
	}
	return name + "no agent has answered: " + visible.Line(j.Text)
}

// writeNotes writes what the table does not show at a glance.
func writeNotes(b *page, j status.Job) {
	var hosts []string
	for _, p := range j.Waiting {
		hosts = append(hosts, p.Host)
	}
	if slices.Sort(hosts); len(hosts) > 0 {
		writeFolded(b, "", "agents: "+visible.Line(ShortList(slices.Compact(hosts))))
	}
	if len(j.Spares) > 0 {
		var spares []string
		for _, p := range j.Spares {
			spares = append(spares, p.Host)
		}
		slices.Sort(spares)
		writeFolded(b, "\n", plural.Of(len(spares), "spare")+": "+visible.Line(ShortList(spares)))
	}
	writeTracebacks(b, j.Traced())
	if line := collectivesLine(j.Collectives); line != "" {
		writeFolded(b, "\n", line)
	}
	if j.LogDir != "" {
		b.WriteString("\nlog directory: " + visible.Line(j.LogDir) + "\n") // a path remains whole
	}
	isUnknown := func(row []status.Rank) bool { return outputOf(row) == unknown }
	if slices.ContainsFunc(rows(j.Ranks), isUnknown) {
		writeFolded(b, "\n", unknown+": rdzv does not read this output; --tag or --log-dir lets it")
	}
	if n := j.Connecting(); n > 0 {
		are := "are"
		if n == 1 {
			are = "is"
		}
		writeFolded(b, "\n", fmt.Sprintf("%s does not listen on MASTER_PORT yet; %d of %s %s trying "+
			"to connect", rankNames(j.Ranks[:1]), n, plural.Of(j.WorldSize, "rank"), are))
	}
	if missing := j.NotReached(); len(missing) > 0 {
		has := "have"
		if len(missing) == 1 {
			has = "has"
		}
		writeFolded(b, "\n", rankNames(missing)+" "+has+" not reached init_process_group")
	}
	silent := slices.DeleteFunc(slices.Clone(j.Ranks), func(r status.Rank) bool {
		return r.State != status.NoAnswer
	})
	switch {
	case j.Alone != "":
		writeFolded(b, "\n", "only the agent on this node has answered: "+visible.Line(j.Alone))
	case len(silent) > 0:
		writeFolded(b, "\n", "no answer about "+rankNames(silent)+
			": their agent is stopped, or the node is overloaded")
	}
}

// maxTracebacks is how many tracebacks are written.
const maxTracebacks = 4

// writeTracebacks names the ranks that run although they have printed a traceback.
func writeTracebacks(b *page, traced []status.Rank) {
	for i, r := range traced {
		if i == maxTracebacks {
			writeFolded(b, "", plural.Of(len(traced)-i, "more rank")+" printed a traceback, too")
			return
		}
		before := "\n"
		if i > 0 {
			before = ""
		}
		writeFolded(b, before, fmt.Sprintf("%s printed a traceback %s ago and is still running: %s",
			rankNames([]status.Rank{r}), seconds(r.Traceback.Seconds), visible.Line(r.Traceback.Exception)))
	}
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
		names += " (" + visible.Line(ShortList(hosts)) + ")"
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
func writeRanks(b *page, ranks []status.Rank) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	launched := func(r status.Rank) bool { return r.Collectives != nil }
	coll := slices.ContainsFunc(ranks, launched)
	header := "RANK\tHOST\tAGENT\tPID\tSTATE\tSINCE\tINIT\tOUTPUT\tCPU"
	if coll {
		header += "\tCOLL"
	}
	fmt.Fprintln(w, header)
	for _, row := range rows(ranks) {
		first, pid := row[0], "-"
		if len(row) == 1 && first.PID > 0 {
			pid = strconv.Itoa(first.PID)
		}
		host := []rune(cmp.Or(visible.Line(first.Host), "-"))
		if utf8.RuneCountInString(first.Host) > maxHost {
			host = append(host[:maxHost-3], []rune("...")...)
		}
		cells := []string{
			ranges(numbers(row)), string(host), agentOf(row), pid, stateOf(first),
			span(row, seconds, func(r status.Rank) *float64 { return since(r) }),
			initOf(first),
			outputOf(row),
			span(row, percent, func(r status.Rank) *float64 { return r.CPU }),
		}
		if coll {
			cells = append(cells, launchedBy(row))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	w.Flush() // a strings.Builder does not fail
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
