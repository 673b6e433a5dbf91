package record

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The JSON form of a verdict has its words, and is read again as it was. A worker that a signal
// ended has the exit code that a shell shows.
func TestVerdictJSON(t *testing.T) {
	killed := Worker{Rank: 2, PID: 71, Signal: 9, RanFor: Seconds(1500 * time.Millisecond), OOM: true}
	for name, test := range map[string]struct {
		verdict Verdict
		want    []string // parts
	}{
		"killed": {FailedVerdict("id", "node1", killed), []string{
			`"text":"rank 2 on node1 failed first: killed by SIGKILL"`, `"exit_code":137,"signal":"SIGKILL"`,
			`"ran_seconds":1.5`, `"out_of_memory":true`,
		}},
		"incomplete": {
			Verdict{Kind: Incomplete, Roster: &Roster{Joined: 1, Tasks: 2, Unattended: true}},
			[]string{`"roster":{"joined":1,"tasks":2`, `"text":"1 of 2 agents joined`},
		},
		"straggling": {
			Verdict{Kind: Straggling, Stragglers: &Stragglers{First: 1, After: Seconds(time.Minute)}},
			[]string{`"stragglers":{"first_rank":1,"after_seconds":60`},
		},
		"stopped": {Verdict{Kind: Stopped, Text: "rdzv stop on node1"}, []string{
			`"text":"rdzv stop on node1 ended the job"`, `"message":"rdzv stop on node1"`,
		}},
	} {
		text := Encode(test.verdict)
		for _, part := range test.want {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %s, want %s in it", name, text, part)
			}
		}
		again, err := Decode[Verdict]([]byte(text))
		if err != nil || !reflect.DeepEqual(again, test.verdict) {
			t.Errorf("%s: read again: %+v, %v\nwant %+v", name, again, err, test.verdict)
		}
		if b, err := json.Marshal(&test.verdict); err != nil || !strings.Contains(text, string(b)) {
			t.Errorf("%s: a pointer to it: %s, %v", name, b, err)
		}
	}
}
