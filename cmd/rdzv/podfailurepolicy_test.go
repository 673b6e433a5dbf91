package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rdzv/rdzv/agent"
	"rdzv/rdzv/restart"
)

var policyRule = regexp.MustCompile(
	`(?s)- action: (\w+)[^\n]*\n\s*(onPodConditions|onExitCodes): ([^\n]*)`)

// The podFailurePolicy of docs/reference/exit-codes.md, which is that of the example, has the codes that
// this program means: a Job is not tried again after those after which workers are not either, except
// that all agents may join the next time; SIGTERM does not count, and everything else does. Kubernetes
// wants the values in order, and none twice.
func TestPodFailurePolicy(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/exit-codes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "\npodFailurePolicy:\n")
	block, _, _ = strings.Cut(block, "\n```")
	final := slices.DeleteFunc(restart.NeverCodes(), func(code int) bool {
		return code == agent.CodeIncomplete
	})
	want := []struct {
		action, on string
		codes      []int
	}{
		{"Ignore", "onPodConditions", nil},
		{"Ignore", "onExitCodes", []int{agent.CodeSignal + int(syscall.SIGTERM)}},
		{"FailJob", "onExitCodes", final},
		{"Count", "onExitCodes", []int{0}}, // all but 0
	}
	rules := policyRule.FindAllStringSubmatch(block, -1)
	if len(rules) != len(want) {
		t.Fatalf("the policy has the rules %q", rules)
	}
	for i, rule := range rules {
		codes := codesOf(t, rule[3])
		if rule[1] != want[i].action || rule[2] != want[i].on || !slices.Equal(codes, want[i].codes) {
			t.Errorf("rule %d is %q with %v, want %v", i, rule[0], codes, want[i])
		}
		if !slices.IsSorted(codes) || len(slices.Compact(slices.Clone(codes))) != len(codes) {
			t.Errorf("Kubernetes rejects the values %v", codes)
		}
	}
}

// codesOf are the values of a rule, nil if it has none.
func codesOf(t *testing.T, rule string) (codes []int) {
	t.Helper()
	_, values, _ := strings.Cut(rule, "values: [")
	values, _, _ = strings.Cut(values, "]")
	for word := range strings.SplitSeq(values, ", ") {
		if word == "" {
			continue
		}
		code, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, code)
	}
	return codes
}
