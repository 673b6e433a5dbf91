package restart

import (
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	early := func(code int, message string) Failure { return Failure{code, message, time.Second} }
	late := func(message string) Failure { return Failure{1, message, Soon} }
	all := func(f ...Failure) []Failure { return f }
	one := Policy{Max: 1}
	three := Policy{Max: 3, Never: []int{7, 139}}
	again, slow := Decision{Restart: true}, Decision{Restart: true, Delay: time.Second}
	for name, test := range map[string]struct {
		policy   Policy
		failures []Failure
		want     Decision
	}{
		"without restarts":     {Policy{}, all(early(1, "")), Decision{}},
		"the first":            {three, all(early(1, "")), again},
		"a signal":             {three, all(early(137, "")), again},
		"wrong usage":          {three, all(early(2, "")), Decision{Reason: Code}},
		"do not requeue":       {three, all(early(93, "")), Decision{Reason: Code}},
		"a missing program":    {three, all(early(127, "")), Decision{Reason: Code}},
		"a given code":         {three, all(early(7, "")), Decision{Reason: Code}},
		"a given signal":       {three, all(early(139, "")), Decision{Reason: Code}},
		"the last restart":     {three, all(late(""), late(""), late("")), again},
		"one too many":         {one, all(late("x"), late("x")), Decision{Reason: Exhausted}},
		"the same message":     {three, all(early(1, "x"), early(1, "x")), Decision{Reason: Repeated}},
		"after a long time":    {three, all(early(1, "x"), late("x")), again},
		"after a long attempt": {three, all(late("x"), early(1, "x")), again},
		"not the one before":   {three, all(early(1, "x"), late("y"), early(1, "x")), again},
		"no message":           {three, all(early(1, ""), early(1, "")), slow},
		"a missing module":     {three, all(early(1, "ModuleNotFoundError: No module named 'torch'")), Decision{Reason: Import}},
		"a missing program of python": {three, all(early(1, "/usr/bin/python3: No module named train")),
			Decision{Reason: Import}},
		"a library that cannot be loaded": {three, all(early(1, "ImportError: libc10.so: cannot open shared object file")),
			Decision{Reason: Import}},
		"a missing module, late":  {three, all(late("ModuleNotFoundError: No module named 'torch'")), again},
		"a missing module, later": {three, all(early(1, "x"), early(1, "ImportError: y")), slow},
		"another error":           {three, all(early(1, "ValueError: ImportError")), again},
		"the same, and the last":  {one, all(early(1, "x"), early(1, "x")), Decision{Reason: Repeated}},
	} {
		if got := test.policy.Decide(test.failures); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestDelay(t *testing.T) {
	p := Policy{Max: 100}
	var failures []Failure
	for i, want := range []int{0, 1, 2, 4, 8, 16, 32, 60, 60, 60} {
		failures = append(failures, Failure{Code: 1, Took: Soon - 1})
		if got := p.Decide(failures).Delay; got != time.Duration(want)*time.Second {
			t.Errorf("after early failure %d: %v, want %ds", i, got, want)
		}
	}
	failures = append(failures, Failure{Code: 1, Took: Soon})
	for i, want := range []time.Duration{0, 0, time.Second} {
		if got := p.Decide(failures).Delay; got != want {
			t.Errorf("%d failures after a long attempt: %v, want %v", i, got, want)
		}
		failures = append(failures, Failure{Code: 1})
	}
}

// The same failure has the same essence, whichever worker has it, and another one has not.
func TestEssence(t *testing.T) {
	for _, c := range []struct {
		first, second       string
		firstOwn, secondOwn []int
		same                bool
	}{
		{"ValueError: no data", "ValueError: no data", []int{0, 71}, []int{3, 72}, true},
		{"RuntimeError: [3] no data", "RuntimeError: [0] no data", []int{3}, []int{0}, true},
		{"Rank 3: worker-4711 died", "Rank 0: worker-4712 died", []int{3, 4711}, []int{0, 4712}, true},
		{"cuda:1: no memory", "cuda:0: no memory", []int{9, 1}, []int{8, 0}, true},
		{"rank3 (pid: 99) hangs", "rank0 (pid: 98) hangs", []int{3, 71}, []int{0, 72}, true},
		{"bad object at 0x7f12ab", "bad object at 0x7fAB12", nil, nil, true},
		{"cannot reach 10.0.0.1:29500", "cannot reach 10.0.0.2:31000", nil, nil, true},
		{"cannot reach [::1]:29500", "cannot reach [fe80::1%eth0]:31000", nil, nil, true},
		{"no server at port 29500", "no server at port 29501", nil, nil, true},
		{"KeyError: 17", "KeyError: 23", []int{0, 71}, []int{1, 72}, false},
		{"loss is nan in step 40", "loss is nan in step 900", []int{0, 71}, []int{0, 72}, false},
		{"expected 100 columns", "expected 101 columns", []int{0}, []int{1}, false},
	} {
		a, b := Essence(c.first, c.firstOwn...), Essence(c.second, c.secondOwn...)
		if (a == b) != c.same {
			t.Errorf("%q and %q: same %t, want %t", a, b, a == b, c.same)
		}
	}
}
