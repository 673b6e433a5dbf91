package proctest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Kills counts the processes that a test kills at random, by what it has chosen to kill.
type Kills struct {
	mu      sync.Mutex
	choices map[string]killCount
}

type killCount struct {
	times    int // how often this was chosen
	complete int // how often all victims were killed: none had ended before, or had not started
	kills    int
}

// Add counts a choice of so many victims, and how many of them were killed.
func (k *Kills) Add(choice string, victims, killed int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.choices == nil {
		k.choices = map[string]killCount{}
	}
	n := k.choices[choice]
	n.times++
	if n.kills += killed; killed == victims {
		n.complete++
	}
	k.choices[choice] = n
}

// Sum is how many processes were killed.
func (k *Kills) Sum() (sum int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range k.choices {
		sum += n.kills
	}
	return sum
}

// String is a table of the choices.
func (k *Kills) String() string {
	sum := k.Sum()
	k.mu.Lock()
	defer k.mu.Unlock()
	var table strings.Builder
	const row = "%-48s %8v %10v %9v\n"
	fmt.Fprintf(&table, row, "chosen", "times", "all killed", "SIGKILLs")
	for _, choice := range slices.Sorted(maps.Keys(k.choices)) {
		n := k.choices[choice]
		fmt.Fprintf(&table, row, choice, n.times, n.complete, n.kills)
	}
	fmt.Fprintf(&table, row, "sum", "", "", sum)
	return table.String()
}
