package stacks

import (
	"fmt"
	"reflect"
	"testing"
)

// Workers with the same stack are a group, whatever files and peers they wait for. The largest
// group is the first.
func TestOf(t *testing.T) {
	worker := func(rank int, does, object string, python ...string) Worker {
		return Worker{Rank: rank, Main: Thread{Does: does, Object: object}, Python: python}
	}
	hidden := worker(4, "waiting", "")
	hidden.Problem = NotInstalled
	r := Of("train", []Node{
		{Host: "c", Problem: "has not answered"},
		{Host: "b", Addr: "fe80::1", Ranks: 6, Workers: []Worker{
			worker(2, "sleeping", ""), worker(3, "reading", "/data/3"), hidden,
		}},
		{Host: "a", Addr: "10.0.0.1", Workers: []Worker{
			worker(1, "reading", "/data/1"), worker(0, "reading", "[fe80::1]:71"),
			worker(5, "reading", "10.0.0.1:72", "f (x.py)"),
		}},
	})
	var got []string
	for _, g := range r.Groups {
		got = append(got, fmt.Sprint(g.Ranks(), g.Workers[0].Host, g.Workers[0].Main.Object))
	}
	want := []string{"[0 1 3]ab:71", "[2]b", "[4]b", "[5]aa:72"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the groups are %q, want %q", got, want)
	}
	if rest := r.Rest(); len(rest) != 0 {
		t.Errorf("half of the ranks do the same, and %+v differ", rest)
	}
	p := []Problem{{"has not answered", []string{"c"}}, {NotInstalled, []string{"b"}}}
	if r.Job != "train" || !reflect.DeepEqual(r.Problems, p) {
		t.Errorf("the problems are %+v, want %+v", r.Problems, p)
	}
	r.Ranks = 5 // the first three are most of them
	if rest := r.Rest(); len(rest) != 3 || rest[0].Rank != 2 || rest[2].Rank != 5 {
		t.Errorf("the workers that differ are %+v", rest)
	}
}

// The kinds of threads are bounded.
func TestCounts(t *testing.T) {
	var texts []string
	for i := range 20 {
		texts = append(texts, fmt.Sprint("t", i))
	}
	got := counts(append(texts, "t7"))
	if len(got) != maxKinds || got[0] != (Count{2, "t7"}) || got[5] != (Count{15, "something else"}) {
		t.Errorf("got %+v", got)
	}
}
