package stacks

import (
	"encoding/json"
	"strings"
)

// LeftOut is the problem of a worker whose Python stack Fit has left out.
const LeftOut = "some Python stacks are left out: the answers of all agents together have a limit"

// Fit leaves out whole threads, the last ones first, until the JSON of n has at most limit bytes:
// Python stacks, then what is known of other threads and of files. Before that it shortens NCCL's
// report.
func (n *Node) Fit(limit int) {
	over := sizeOf(n) - limit
	leave := func(w *Worker, change func()) {
		before := sizeOf(w)
		change()
		over -= before - sizeOf(w)
	}
	if before := sizeOf(n); over > 0 && len(n.NCCL) > limit/4 {
		n.NCCL = strings.ToValidUTF8(n.NCCL[:limit/4], "") + "..."
		over -= before - sizeOf(n)
	}
	for i := len(n.Workers) - 1; i >= 0 && over > 0; i-- {
		if w := &n.Workers[i]; len(w.Python) > 0 {
			leave(w, func() { w.Python, w.At, w.Problem = nil, "", LeftOut })
		}
	}
	for i := len(n.Workers) - 1; i >= 0 && over > 0; i-- {
		w := &n.Workers[i]
		leave(w, func() { w.Others, w.Main.Object = nil, "" })
	}
}

func sizeOf(v any) int {
	text, _ := json.Marshal(v) // a struct of texts and numbers
	return len(text)
}
