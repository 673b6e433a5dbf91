package main

import (
	"fmt"
	"strings"
	"sync"
)

// table counts right reasons.
type table struct {
	mu    sync.Mutex
	good  map[string]map[string]int // by kind and layout
	total map[string]map[string]int
	wrong []string
}

func (t *table) add(f fault, wrong []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.total == nil {
		t.good, t.total = map[string]map[string]int{}, map[string]map[string]int{}
	}
	if t.total[f.Kind] == nil {
		t.good[f.Kind], t.total[f.Kind] = map[string]int{}, map[string]int{}
	}
	t.total[f.Kind][f.layout]++
	if len(wrong) == 0 {
		t.good[f.Kind][f.layout]++
		return
	}
	t.wrong = append(t.wrong, fmt.Sprintf("fault %d (%s of rank %d of %d, %s): %s", f.Number, f.Kind, f.Rank, f.ranks, f.layout, strings.Join(wrong, "; ")))
}

func (t *table) all() int   { return sum(t.total) }
func (t *table) right() int { return sum(t.good) }

func sum(counts map[string]map[string]int) (n int) {
	for _, row := range counts {
		for _, count := range row {
			n += count
		}
	}
	return n
}

func (t *table) String() string {
	var b strings.Builder
	for _, line := range t.wrong {
		fmt.Fprintf(&b, "wrong: %s\n", line)
	}
	fmt.Fprintf(&b, "%-8s", "fault")
	for _, layout := range layouts {
		fmt.Fprintf(&b, "%14s", layout)
	}
	b.WriteString("\n")
	for _, kind := range kinds {
		fmt.Fprintf(&b, "%-8s", kind)
		for _, layout := range layouts {
			fmt.Fprintf(&b, "%14s", fmt.Sprintf("%d of %d", t.good[kind][layout], t.total[kind][layout]))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "right: %d of %d\n", t.right(), t.all())
	return b.String()
}
