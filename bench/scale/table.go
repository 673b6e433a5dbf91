package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A column is a figure of one run, and how it reads.
type column struct {
	name   string
	format string
	figure func(r result, n float64, o options) float64
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Where the store bears N agents with O(N), the columns per agent stay the same from row to row.
var columns = []column{
	{"last knows world, ms", "%.0f", func(r result, _ float64, _ options) float64 { return ms(r.world) }},
	{"last knows end, ms", "%.0f", func(r result, _ float64, _ options) float64 { return ms(r.known) }},
	{"last knows gone, ms", "%.0f", func(r result, _ float64, _ options) float64 { return ms(r.gone) }},
	{"store's CPU joining, ms", "%.0f", func(r result, _ float64, _ options) float64 { return ms(r.joinCPU) }},
	{"ending, ms", "%.0f", func(r result, _ float64, _ options) float64 { return ms(r.endCPU) }},
	{"idle, %", "%.2f", func(r result, _ float64, o options) float64 {
		if o.idle == 0 {
			return math.NaN()
		}
		return 100 * r.idleCPU.Seconds() / o.idle.Seconds()
	}},
	{"store's memory, MB", "%.0f", func(r result, _ float64, _ options) float64 { return float64(r.peak) / (1 << 20) }},
	{"per agent: store's CPU, ms", "%.2f", func(r result, n float64, _ options) float64 { return ms(r.joinCPU+r.endCPU) / n }},
	{"agent's CPU, ms", "%.2f", func(r result, n float64, _ options) float64 { return ms(r.agentsCPU) / n }},
	{"store's memory, kB", "%.0f", func(r result, n float64, _ options) float64 { return float64(r.peak-r.empty) / 1024 / n }},
	{"wire, kB", "%.2f", func(r result, n float64, _ options) float64 { return float64(r.bytes) / 1024 / n }},
	{"store's goroutines", "%.1f", func(r result, n float64, _ options) float64 { return float64(r.busy-r.alone) / n }},
	{"changes", "%.2f", func(r result, n float64, _ options) float64 { return float64(r.changes) / n }},
	{"dials", "%.2f", func(r result, n float64, _ options) float64 { return float64(r.dials) / n }},
}

// heading begins a Markdown table.
func heading() string {
	names := []string{"agents", "connection", "end"}
	for _, c := range columns {
		names = append(names, c.name)
	}
	return "\n| " + strings.Join(names, " | ") + " |\n|" + strings.Repeat(" --- |", len(names)) + "\n"
}

// row is the medians of the runs of n agents.
func row(n int, o options, runs []result) string {
	wire := "plain"
	if o.tls {
		wire = "TLS"
	}
	cells := []string{fmt.Sprint(n), wire, o.end}
	for _, c := range columns {
		all := make([]float64, len(runs))
		for i, r := range runs {
			all[i] = c.figure(r, float64(n), o)
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
