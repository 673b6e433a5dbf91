package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A sample is one run of n agents.
type sample struct {
	result
	n    float64
	idle time.Duration
}

// A column is a figure of a sample and its format.
type column struct {
	name   string
	format string
	figure func(s sample) float64
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// If the store's cost grows linearly with the agents, the columns per agent are the same in all
// rows.
var columns = []column{
	{"last knows its world, ms", "%.0f", func(s sample) float64 { return ms(s.world) }},
	{"last knows the end, ms", "%.0f", func(s sample) float64 { return ms(s.ended) }},
	{"last knows all have settled, ms", "%.0f", func(s sample) float64 { return ms(s.settled) }},
	{"store's CPU joining, ms", "%.0f", func(s sample) float64 { return ms(s.joinCPU) }},
	{"ending, ms", "%.0f", func(s sample) float64 { return ms(s.endCPU) }},
	{"idle, %", "%.2f", sample.idlePercent},
	{"store's memory, MB", "%.0f", func(s sample) float64 {
		return float64(s.peakBytes) / (1 << 20)
	}},
	{"per agent: store's CPU, ms", "%.2f", func(s sample) float64 {
		return ms(s.joinCPU+s.endCPU) / s.n
	}},
	{"agent's CPU, ms", "%.2f", func(s sample) float64 { return ms(s.agentsCPU) / s.n }},
	{"store's memory, kB", "%.0f", func(s sample) float64 {
		return float64(s.peakBytes-s.emptyBytes) / 1024 / s.n
	}},
	{"wire, kB", "%.2f", func(s sample) float64 { return float64(s.bytes) / 1024 / s.n }},
	{"store's goroutines", "%.1f", func(s sample) float64 {
		return float64(s.busyGo-s.emptyGo) / s.n
	}},
	{"changes", "%.2f", func(s sample) float64 { return float64(s.changes) / s.n }},
	{"dials", "%.2f", func(s sample) float64 { return float64(s.dials) / s.n }},
}

// idlePercent is the share of a core that the store used between the world and the end. It is not a
// number if there was no such time.
func (s sample) idlePercent() float64 {
	if s.idle == 0 {
		return math.NaN()
	}
	return 100 * s.idleCPU.Seconds() / s.idle.Seconds()
}

// heading is the beginning of a Markdown table.
func heading() string {
	names := []string{"agents", "connection", "end"}
	for _, c := range columns {
		names = append(names, c.name)
	}
	rule := "|" + strings.Repeat(" --- |", len(names))
	return "\n| " + strings.Join(names, " | ") + " |\n" + rule + "\n"
}

// row has the medians of the runs of n agents.
func row(n int, o options, runs []result) string {
	wire := "plain"
	if o.tls {
		wire = "TLS"
	}
	cells := []string{fmt.Sprint(n), wire, o.end}
	for _, c := range columns {
		all := make([]float64, len(runs))
		for i, r := range runs {
			all[i] = c.figure(sample{r, float64(n), o.idle})
		}
		slices.Sort(all)
		if middle := all[len(all)/2]; math.IsNaN(middle) {
			cells = append(cells, "-")
		} else {
			cells = append(cells, fmt.Sprintf(c.format, middle))
		}
	}
	return "| " + strings.Join(cells, " | ") + " |"
}
