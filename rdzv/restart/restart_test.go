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
		"without restarts":       {Policy{}, all(early(1, "")), Decision{}},
		"the first":              {three, all(early(1, "")), again},
		"a signal":               {three, all(early(137, "")), again},
		"wrong usage":            {three, all(early(2, "")), Decision{Reason: Code}},
		"do not requeue":         {three, all(early(93, "")), Decision{Reason: Code}},
		"a missing program":      {three, all(early(127, "")), Decision{Reason: Code}},
		"a given code":           {three, all(early(7, "")), Decision{Reason: Code}},
		"a given signal":         {three, all(early(139, "")), Decision{Reason: Code}},
		"the last restart":       {three, all(late(""), late(""), late("")), again},
		"one too many":           {one, all(late("x"), late("x")), Decision{Reason: Exhausted}},
		"the same message":       {three, all(early(1, "x"), early(1, "x")), Decision{Reason: Repeated}},
		"after a long time":      {three, all(early(1, "x"), late("x")), again},
		"after a long attempt":   {three, all(late("x"), early(1, "x")), again},
		"not the one before":     {three, all(early(1, "x"), late("y"), early(1, "x")), again},
		"no message":             {three, all(early(1, ""), early(1, "")), slow},
		"the same, and the last": {one, all(early(1, "x"), early(1, "x")), Decision{Reason: Repeated}},
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
