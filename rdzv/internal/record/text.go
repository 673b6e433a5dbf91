package record

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdzv/internal/plural"
)

// MaxShown is how many elements of a list are shown; the others are counted.
const MaxShown = 8

// Cut returns the elements that are shown and the number of the others.
func Cut[T any](all []T) (shown []T, more int) {
	shown = all[:min(len(all), MaxShown)]
	return shown, len(all) - len(shown)
}

// List formats the result of cut: "a, b and 2 more".
func List[T any](shown []T, more int) string {
	texts := make([]string, len(shown))
	for i, e := range shown {
		texts[i] = fmt.Sprint(e)
	}
	s := strings.Join(texts, ", ")
	if more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// RanksText is "rank 8", or "ranks 4-7" of a list of ranks such as those of NodeRanks.
func RanksText(ranks string) string {
	if strings.ContainsAny(ranks, "-,") {
		return "ranks " + ranks
	}
	return "rank " + ranks
}

// RankList is "rank 8" or "ranks 0,1 and 3 more".
func RankList(ranks []int, more int) string {
	texts := make([]string, len(ranks))
	for i, rank := range ranks {
		texts[i] = strconv.Itoa(rank)
	}
	text := plural.Noun(len(ranks)+more, "rank") + " " + strings.Join(texts, ",")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// ExitStatus is how a worker ended, for people: "exit 1" or "killed by SIGKILL".
func ExitStatus(code int, signal Signal) string {
	if signal != 0 {
		return "killed by " + signal.String()
	}
	return fmt.Sprintf("exit %d", code)
}

// Sorted returns the hosts in order, each once.
func Sorted(hosts []string) []string {
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// HostsOf returns the hosts of the members, sorted, each once.
func HostsOf(members []Member) []string {
	hosts := make([]string, len(members))
	for i, m := range members {
		hosts[i] = m.Host
	}
	return Sorted(hosts)
}

// Ranges formats ranks as "0-3", "0,2" or "0,2,...,14".
func Ranges(ranks []int) string {
	slices.Sort(ranks)
	var texts []string
	for len(ranks) > 0 {
		n := 1
		for n < len(ranks) && ranks[n] == ranks[0]+n {
			n++
		}
		text := fmt.Sprint(ranks[0])
		if n > 1 {
			text += fmt.Sprintf("-%d", ranks[n-1])
		}
		texts, ranks = append(texts, text), ranks[n:]
	}
	if n := len(texts); n > 3 {
		texts = []string{texts[0], texts[1], "...", texts[n-1]}
	}
	return strings.Join(texts, ",")
}
