// Package stacks tells what the workers of a job are doing: the Python stack of each if py-spy can
// read it, and what the kernel shows of its threads. It only reads: no worker is changed, and none
// is stopped.
package stacks

import (
	"cmp"
	"maps"
	"slices"
)

// Node is the JSON answer of one agent about its workers. [Of] makes a Report of all answers.
type Node struct {
	Host    string   `json:"host"`
	Addr    string   `json:"addr,omitempty"`  // of the host, as other agents see it; "" if unknown
	Ranks   int      `json:"ranks,omitempty"` // number of workers of the job; 0 before it is agreed
	Workers []Worker `json:"workers,omitempty"`
	// Collectives compares all ranks by the counts of NCCL, "" if there are none or it was not asked.
	// Behind are the ranks that are behind by that.
	Collectives string `json:"collectives,omitempty"`
	Behind      []int  `json:"behind,omitempty"`
	// NCCL is the report of NCCL before 2.28.7 on all ranks, a text of some lines.
	NCCL    string `json:"nccl_report,omitempty"`
	Problem string `json:"-"` // why nothing else is known
}

// Worker describes a running worker. Its agent sets Rank, PID and Init, [Observer.Observe] the
// rest, and [Of] the host.
type Worker struct {
	Rank int    `json:"rank"`
	Host string `json:"host,omitempty"` // that of its Node
	PID  int    `json:"pid"`            // of the process that runs Python: its or a descendant's
	// Init is whether it has reached init_process_group, nil if that is not known.
	Init *bool `json:"init,omitempty"`
	// CPU is the use of CPU time while it was observed, in percent of one CPU.
	CPU int `json:"cpu"`
	// Main is the main thread as the kernel shows it.
	Main Thread `json:"main"`
	// Python is the Python stack of the main thread, the innermost call first; nil if it is unknown.
	Python []string `json:"python,omitempty"`
	// At is the line of the program itself, not of a library, in which it is: "train.py:41"; "" if
	// that is not known.
	At string `json:"at,omitempty"`
	// Others are the other threads: of Python if Python is known.
	Others []Count `json:"others,omitempty"`
	// Problem is why something is not known, "" if all is.
	Problem string `json:"problem,omitempty"`
}

// Thread is a thread as the kernel shows it.
type Thread struct {
	Does   string `json:"does"`             // "reading from a file (read)"
	Object string `json:"object,omitempty"` // what with: the path of that file, or "10.0.0.2:4000"
	State  string `json:"state,omitempty"`  // as ps shows it: R, S, D, T, t, Z
	WChan  string `json:"wchan,omitempty"`  // the kernel function in which it waits
}

// Count is how many threads do the same.
type Count struct {
	N    int    `json:"n"`
	Does string `json:"does"`
}

// maxKinds is how many Counts a worker has; the last one is for all others.
const maxKinds = 6

// counts counts equal texts, the most frequent one first.
func counts(texts []string) (list []Count) {
	byText := map[string]int{}
	for _, text := range texts {
		byText[text]++
	}
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		list = append(list, Count{byText[text], text})
	}
	slices.SortStableFunc(list, func(a, b Count) int { return cmp.Compare(b.N, a.N) })
	if len(list) > maxKinds {
		rest := Count{Does: "something else"}
		for _, c := range list[maxKinds-1:] {
			rest.N += c.N
		}
		list = append(list[:maxKinds-1], rest)
	}
	return list
}
