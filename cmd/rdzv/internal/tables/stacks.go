package tables

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/visible"
	"rdzv/internal/nodelist"
	"rdzv/internal/plural"
	"rdzv/rdzv/stacks"
)

// The limits of a table of stacks: more groups, ranges of ranks, and values of a detail are left
// out.
const (
	maxGroups = 16
	maxRanges = 12
	maxValues = 4
)

// Stacks tells where the workers of each job are: first which ones are elsewhere than most
// others, then each place with its ranks.
func Stacks(jobs []stacks.Report, to console.Destination) string {
	b := newPage(to)
	for i, r := range jobs {
		if i > 0 {
			b.WriteString("\n")
		}
		if line := collectivesLine(r.Collectives); line != "" {
			b.plain("", line)
		}
		b.folded("", part{text: "job " + visible.Line(r.Job) + ":"}, stacksHeader(r))
		writeGroups(b, oddFirst(r))
		for _, p := range r.Problems {
			text := nodelist.Short(p.Hosts) + ": " + p.Text
			if p.Text == stacks.NotInstalled {
				text = p.Text + " on " + nodelist.Short(p.Hosts) +
					": in PATH or beside python (pip install py-spy), it shows the lines of Python"
			}
			b.plain("\n", visible.Line(text))
		}
		writeNCCL(b, r.NCCL)
	}
	return b.String()
}

// writeNCCL writes the report of NCCL before 2.28.7, if there is one, as it is.
func writeNCCL(b *page, text string) {
	if text == "" {
		return
	}
	b.WriteString("\nNCCL's report:\n")
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(strings.TrimRight("    "+visible.Line(line), " ") + "\n")
	}
}

// stacksHeader names the ranks to look at, and where they are.
func stacksHeader(r stacks.Report) part {
	rest, ranks := r.Rest(), plural.Of(r.Ranks, "rank")
	switch n, others := len(r.Groups), r.Ranks-len(rest); {
	case n == 0:
		return part{text: "no workers are running"}
	case len(r.NotReached()) > 0:
		return part{text: ranksOf(rest) + " " + verb(rest, "has", "have") +
			" not reached init_process_group: the others wait there" + placeOf(rest)}
	case len(rest) > 0:
		there := "the others are"
		if others == 1 {
			there = "the other one is"
		}
		return part{console.Magenta, ranksOf(rest) + " " + verb(rest, "is", "are") + " not where " +
			there + placeOf(rest)}
	case n == 1 && r.Ranks == 1:
		return part{text: ranks + placeOf(r.Groups[0].Workers)}
	case n == 1 && len(r.Groups[0].Workers) == r.Ranks:
		return part{text: "all " + ranks + " are at the same place" + placeOf(r.Groups[0].Workers)}
	case n == 1:
		return part{text: fmt.Sprintf("%d of %s are at the same place", len(r.Groups[0].Workers), ranks)}
	default:
		return part{text: ranks + " at " + plural.Of(n, "different place")}
	}
}

// verb is that of a sentence about one worker, or several.
func verb(workers []stacks.Worker, one, several string) string {
	if len(workers) == 1 {
		return one
	}
	return several
}

// placeOf is ": train.py:41", or what workers do; "" if that is not the same for all.
func placeOf(workers []stacks.Worker) string {
	where := func(w stacks.Worker) string {
		if len(w.Python) > 0 {
			return cmp.Or(w.At, w.Python[0])
		}
		return w.Main.Does
	}
	for _, w := range workers {
		if where(w) != where(workers[0]) {
			return ""
		}
	}
	if where(workers[0]) == "" {
		return ""
	}
	return ": " + visible.Line(where(workers[0]))
}

// oddFirst are the groups with those of the ranks to look at first.
func oddFirst(r stacks.Report) []stacks.Group {
	rest := r.Rest()
	isOdd := func(g stacks.Group) bool {
		return slices.ContainsFunc(rest, func(w stacks.Worker) bool {
			return w.Rank == g.Workers[0].Rank
		})
	}
	var odd, others []stacks.Group
	for _, g := range r.Groups {
		if isOdd(g) {
			odd = append(odd, g)
		} else {
			others = append(others, g)
		}
	}
	return append(odd, others...)
}

func writeGroups(b *page, groups []stacks.Group) {
	for i, g := range groups {
		if i == maxGroups {
			left := 0
			for _, g := range groups[i:] {
				left += len(g.Workers)
			}
			b.plain("\n", plural.Of(left, "more rank")+" at other places")
			return
		}
		writeGroup(b, g)
	}
}

// ranksOf is "rank 2 (node2)" or "ranks 0-1,3".
func ranksOf(workers []stacks.Worker) string {
	if len(workers) == 1 {
		return fmt.Sprintf("rank %d (%s)", workers[0].Rank, visible.Line(workers[0].Host))
	}
	return "ranks " + rankRanges(workers)
}

// rankRanges is "0-1,3" of workers in the order of their ranks.
func rankRanges(workers []stacks.Worker) string {
	ranks := make([]int, len(workers))
	for i, w := range workers {
		ranks[i] = w.Rank
	}
	return ranges(ranks)
}

// ranges is "0-1,3" of ranks in their order.
func ranges(ranks []int) string {
	var parts []string
	for i := 0; i < len(ranks); {
		last := i
		for last+1 < len(ranks) && ranks[last+1] == ranks[last]+1 {
			last++
		}
		part := strconv.Itoa(ranks[i])
		if last > i {
			part += "-" + strconv.Itoa(ranks[last])
		}
		if parts = append(parts, part); len(parts) == maxRanges && last+1 < len(ranks) {
			parts = append(parts, "...")
			break
		}
		i = last + 1
	}
	return strings.Join(parts, ",")
}

// writeGroup writes a place with its ranks, and below it what the kernel shows of their main
// threads, and what the other threads of the first rank are doing.
func writeGroup(b *page, g stacks.Group) {
	first := g.Workers[0]
	title := ranksOf(g.Workers)
	if len(first.Python) == 0 {
		title += ": " + visible.Line(first.Main.Does)
	}
	b.plain("\n", title)
	for _, call := range first.Python {
		b.WriteString("    " + visible.Line(call) + "\n")
	}
	var details []string
	detail := func(name string, of func(stacks.Worker) string) {
		if text := values(g.Workers, of); text != "" {
			details = append(details, name+text)
		}
	}
	if len(g.Workers) > 1 {
		details = append(details, "on "+visible.Line(nodelist.Short(hostsOf(g.Workers))))
	}
	if len(g.Workers) <= maxValues {
		detail("pid ", func(w stacks.Worker) string { return strconv.Itoa(w.PID) })
	}
	if len(first.Python) > 0 {
		detail("", func(w stacks.Worker) string { return w.Main.Does })
	}
	detail("with ", func(w stacks.Worker) string { return w.Main.Object })
	detail("in the kernel function ", func(w stacks.Worker) string {
		if w.Main.State != "D" { // otherwise it follows from what the thread does
			return ""
		}
		return w.Main.WChan
	})
	details = append(details, "CPU "+usage(g.Workers))
	b.plain("  ", strings.Join(details, "; "))
	if others := threadCounts(first.Others); others != "" {
		b.plain("  ", "other threads: "+others)
	}
}

// values are the different values that workers have, in the order of their ranks.
func values(workers []stacks.Worker, of func(stacks.Worker) string) string {
	var list []string
	for _, w := range workers {
		if v := of(w); v != "" && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	if len(list) > maxValues {
		list = append(list[:maxValues], "...")
	}
	return visible.Line(strings.Join(list, ", "))
}

// hostsOf are the hosts of workers in the order of their ranks.
func hostsOf(workers []stacks.Worker) (hosts []string) {
	for _, w := range workers {
		if !slices.Contains(hosts, w.Host) {
			hosts = append(hosts, w.Host)
		}
	}
	return hosts
}

// usage is the use of CPU time by workers: "0-3%".
func usage(workers []stacks.Worker) string {
	least, most := workers[0].CPU, workers[0].CPU
	for _, w := range workers {
		least, most = min(least, w.CPU), max(most, w.CPU)
	}
	if least == most {
		return fmt.Sprintf("%d%%", most)
	}
	return fmt.Sprintf("%d-%d%%", least, most)
}

func threadCounts(list []stacks.Count) string {
	var texts []string
	for _, c := range list {
		texts = append(texts, fmt.Sprintf("%d %s", c.N, c.Does))
	}
	return visible.Line(strings.Join(texts, ", "))
}

// collectivesLine returns the line about NCCL's report on the ranks of a job, "" if there is none.
func collectivesLine(text string) string {
	if text == "" {
		return ""
	}
	return "NCCL: " + visible.Line(text)
}
