package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// report is what of rdzv exec --report is looked at.
type report struct {
	Rank     int      `json:"rank"`
	ExitCode int      `json:"exit_code"`
	Message  string   `json:"message"`
	Stderr   []string `json:"stderr"`
}

// judge says what is wrong with a job's end.
func judge(f fault, codes []int, path, said string) (wrong []string) {
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if f.Kind == "agent" {
		judgeLoss(f, codes, said, complain)
	} else {
		judgeFailure(f, codes, path, complain)
		if n := strings.Count(said, "failed first\n"); n != 1 {
			complain("%d reports", n)
		}
	}
	if len(wrong) > 0 {
		wrong = append(wrong, said)
	}
	return wrong
}

func judgeFailure(f fault, codes []int, path string, complain func(string, ...any)) {
	for _, code := range codes {
		if code != f.expect() {
			complain("a command ended with %d, want %d", code, f.expect())
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		complain("there is no report: %v", err)
		return
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		complain("the report cannot be read: %v", err)
	}
	if r.Rank != f.Rank {
		complain("the report blames rank %d", r.Rank)
	}
	if r.ExitCode != f.expect() {
		complain("the report tells of code %d, want %d", r.ExitCode, f.expect())
	}
	if says := f.says(); !slices.ContainsFunc(append(r.Stderr, r.Message), func(line string) bool { return strings.Contains(line, says) }) {
		complain("the report does not repeat %q", says)
	}
}

// judgeLoss is for a killed agent: who lives names it. A launcher tells of its own child's death by its own code.
func judgeLoss(f fault, codes []int, said string, complain func(string, ...any)) {
	if f.layout == "two agents" && !slices.Contains(codes, f.expect()) {
		complain("the agents ended with %d, want %d", codes, f.expect())
	}
	if strings.Contains(said, "failed first") || !strings.Contains(said, "lost ") {
		complain("nobody tells of the loss")
	}
}
