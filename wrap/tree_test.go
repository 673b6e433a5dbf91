package wrap

import (
	"strings"
	"syscall"
	"testing"
)

// TestInvalidTree: Run returns an error and no results.
func TestInvalidTree(t *testing.T) {
	nothingLeft(t)
	negative, node := sh(t, "exit 0"), -1
	negative.Bind.CPUs = []int{0, -1}
	badNode := sh(t, "exit 0")
	badNode.Bind.Node = &node
	for _, tree := range []Tree{
		{},
		{Workers: []Worker{negative}},
		{Workers: []Worker{badNode}},
		{Workers: []Worker{{}}},
		{Workers: []Worker{sh(t, "exit 0")}, Grace: -1},
	} {
		if results, err := Run(t.Context(), tree); err == nil || results != nil {
			t.Errorf("Run(%+v) = %v, %v, want an error", tree, results, err)
		}
	}
}

// TestTreeSignals: each signal on Tree.Signals is sent once to every worker.
func TestTreeSignals(t *testing.T) {
	nothingLeft(t)
	signals := make(chan Event)
	tree := Tree{Signals: signals}
	var outs []lineReader
	for range 4 {
		out, l := lines(t)
		w := worker(t, printingSignals)
		w.Stdout = out
		tree.Workers = append(tree.Workers, w)
		outs = append(outs, l)
	}
	r := begin(t, tree)
	for _, l := range outs {
		l.want("ready")
	}
	for _, s := range []syscall.Signal{
		syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGINT, syscall.SIGWINCH, syscall.SIGUSR2,
	} {
		signals <- Event{Signal: s}
		for _, l := range outs {
			l.want(strings.ReplaceAll(s.String(), " ", "-"))
		}
	}
	results, err := r.wait()
	for i, e := range results {
		if e.Code != 7 || e.Stopped {
			t.Errorf("worker %d: %+v, want Code 7, not Stopped", i, e)
		}
	}
	if err != nil {
		t.Error(err)
	}
}
