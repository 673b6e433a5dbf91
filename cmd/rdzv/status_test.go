package main

import (
	"strings"
	"testing"

	"rdzv/rdzv/status"
)

// What status and stacks say if there is nothing to print.
func TestNoAnswers(t *testing.T) {
	for _, c := range []struct {
		r    status.Report
		job  string
		want string // a part of the message, "" for none
	}{
		{status.Report{Jobs: []status.Job{{State: "running"}}}, "", ""},
		{status.Report{Jobs: []status.Job{{}}}, "", "a job has not answered"},
		{status.Report{Silent: []int{71, 7}}, "", "no answer from agents (pids 7, 71)"},
		{status.Report{Names: []string{"a", "b"}}, "c", `has no job "c" on `},
		{status.Report{Names: []string{"a", "b"}}, "", "has no job on "}, // they have just ended
		{status.Report{}, "", "has no job on "},
	} {
		err := noAnswers("status", c.r, c.job)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, job %q: %v, want %q", c.r, c.job, err, c.want)
		}
	}
}
