package stacks

import "testing"

// Which single rank is not where the others are, and why none is known.
func TestOdd(t *testing.T) {
	at := func(rank int, does, state string) Worker {
		return Worker{Rank: rank, Main: Thread{Does: does, State: state}}
	}
	inInit := func(w Worker, reached bool) Worker { w.Init = &reached; return w }
	const futex = "waiting for another thread (futex)"
	for _, c := range []struct {
		what  string
		ranks int
		list  []Worker
		odd   int // -1 if there is none
		why   string
	}{
		{"one", 3, []Worker{at(0, futex, "S"), at(1, "running", "R"), at(2, futex, "S")}, 1,
			"its stack differs from the other 2"},
		{"same", 2, []Worker{at(0, futex, "S"), at(1, futex, "S")}, -1, "all are at the same place"},
		{"half", 2, []Worker{at(0, futex, "S"), at(1, "running", "R")}, -1, "they are at 2 different places"},
		{"half sleeps", 2, []Worker{at(0, futex, "S"), at(1, "sleeping (clock_nanosleep)", "S")}, 1,
			"its stack differs from that of the other one"},
		{"waiting in different ways", 4, []Worker{at(0, futex, "S"), at(1, "waiting for events (poll)", "S"),
			at(2, "sleeping (clock_nanosleep)", "S"), at(3, "running", "R")}, 2,
			"its stack differs from the other 3"},
		{"half waits", 4, []Worker{at(0, futex, "S"), at(1, "waiting for events (poll)", "S"),
			at(2, "sleeping (clock_nanosleep)", "S"), at(3, "reading (read)", "S")}, -1,
			"they are at 4 different places"},
		{"stopped", 2, []Worker{at(0, futex, "S"), at(1, "stopped by a signal", "T")}, 1,
			"it is stopped by a signal"},
		{"all stopped", 2, []Worker{at(0, "stopped by a signal", "T"), at(1, "stopped by a signal", "T")}, -1,
			"all are at the same place"},
		{"blocked", 2, []Worker{at(0, "opening a file (openat), uninterruptible", "D"), at(1, futex, "S")}, 0,
			"it hangs in the kernel: opening a file (openat), uninterruptible"},
		{"two odd", 5, []Worker{at(0, futex, "S"), at(1, futex, "S"), at(2, futex, "S"), at(3, "running", "R"),
			at(4, "running", "R")}, -1, "they are at 2 different places"},
		{"not all known", 3, []Worker{at(0, futex, "S"), at(1, futex, "S")}, -1,
			"only 2 of 3 ranks have told where they are"},
		{"before init", 2, []Worker{inInit(at(0, futex, "S"), true), inInit(at(1, futex, "S"), false)}, 1,
			"it has not reached init_process_group, where the others wait"},
		{"two before init", 3, []Worker{inInit(at(0, futex, "S"), true), inInit(at(1, futex, "S"), false),
			inInit(at(2, futex, "S"), false)}, -1, "they are at 2 different places"},
		{"all before init", 2, []Worker{inInit(at(0, futex, "S"), false), inInit(at(1, futex, "S"), false)}, -1,
			"all are at the same place"},
		{"alone", 1, []Worker{at(0, futex, "S")}, 0, "it is the only one"},
		{"none", 2, nil, -1, "only 0 of 2 ranks have told where they are"},
	} {
		r := Of("train", []Node{{Host: "node1", Ranks: c.ranks, Workers: c.list}})
		w, why := r.Odd()
		odd := -1
		if w != nil {
			odd = w.Rank
		}
		if odd != c.odd || why != c.why {
			t.Errorf("%s: rank %d: %q, want rank %d: %q", c.what, odd, why, c.odd, c.why)
		}
	}
}

// A report has what the first agent knows from NCCL.
func TestReportOfNCCL(t *testing.T) {
	r := Of("train", []Node{
		{Host: "node1", Ranks: 2},
		{Host: "node2", Ranks: 2, Collectives: "rank 1 is behind", Behind: []int{1}},
		{Host: "node3", Ranks: 2, Collectives: "other", NCCL: "NCCL version 2.24.3"},
		{Host: "node4", Ranks: 2, NCCL: "NCCL version 2.26"},
	})
	if r.Collectives != "rank 1 is behind" || len(r.Behind) != 1 || r.NCCL != "NCCL version 2.24.3" {
		t.Errorf("the report is %+v", r)
	}
}
