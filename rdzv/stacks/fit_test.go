package stacks

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// deepest is a node whose workers have the deepest stacks.
func deepest(workers int) Node {
	call := strings.Repeat("x", maxFrame)
	n := Node{Host: "node1", Ranks: workers}
	for rank := range workers {
		w := Worker{Rank: rank, PID: 4000 + rank, Main: Thread{Does: "waiting", Object: "10.0.0.2:4000"}}
		for range maxAllFrames / workers {
			w.Python = append(w.Python, call)
		}
		for i := range maxKinds {
			w.Others = append(w.Others, Count{1, fmt.Sprint(i, call)})
		}
		n.Workers = append(n.Workers, w)
	}
	return n
}

// An answer that would be too large ends with a whole stack, and says so.
func TestFit(t *testing.T) {
	for _, c := range []struct{ limit, stacks, others int }{
		{1 << 20, 8, 8}, {120_000, 4, 8}, {30_000, 0, 8}, {9_000, 0, 5}, {2_000, 0, 0},
	} {
		n := deepest(8)
		n.Fit(c.limit)
		text, err := json.Marshal(n)
		if err != nil || len(text) > c.limit {
			t.Errorf("%d bytes, limit %d, %v", len(text), c.limit, err)
		}
		stacks, others := 0, 0
		for i, w := range n.Workers {
			whole := len(w.Python) == maxAllFrames/8
			if whole == (w.Problem == LeftOut) || !whole && len(w.Python) > 0 {
				t.Errorf("limit %d: worker %d has %d calls, problem %q", c.limit, i, len(w.Python), w.Problem)
			}
			if whole {
				stacks++
			}
			if w.Others != nil {
				others++
			}
		}
		if stacks != c.stacks || others != c.others {
			t.Errorf("limit %d: %d stacks, %d with other threads; want %d, %d",
				c.limit, stacks, others, c.stacks, c.others)
		}
	}
}

// NCCL's report is shortened first.
func TestFitReportOfNCCL(t *testing.T) {
	const limit = 30_000
	n := deepest(8)
	n.NCCL = strings.Repeat("Rank 5 has launched up to operation 6649\n", 400)
	n.Fit(limit)
	text, err := json.Marshal(n)
	if err != nil || len(text) > limit || len(n.NCCL) > limit/4+3 || !strings.HasPrefix(n.NCCL, "Rank 5") {
		t.Errorf("%d bytes, %d of them NCCL's, %v", len(text), len(n.NCCL), err)
	}
}

// A rank whose stack is left out is not taken for one that is elsewhere than the others.
func TestLeftOutIsNotOdd(t *testing.T) {
	n := deepest(8)
	n.Workers[7].Python, n.Workers[7].Problem = nil, LeftOut
	r := Of("x", []Node{n})
	odd, why := r.Odd()
	if rest := r.Rest(); len(rest) != 0 || odd != nil ||
		why != "only 7 of 8 ranks have told where they are" {
		t.Errorf("the rest is %v; odd is %v, %q", rest, odd, why)
	}
}
