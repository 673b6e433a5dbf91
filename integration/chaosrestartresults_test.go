package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// checkEnd checks how the job ended, after the last fault.
func (r *restartJob) checkEnd(code int, last *restartFault) {
	t := r.t
	for i, command := range r.commands {
		if slices.Contains(r.left, i+1) {
			continue
		}
		if got := command.code(); (got == 0) != (code == 0) {
			t.Errorf("%s ended with exit code %d, want %d", command.program(), got, code)
		}
	}
	codes := r.codes(code, last)
	if r.preempted {
		r.checkAgentCodes(append(codes, 123, 128+15)...)
	} else if r.lost {
		r.checkAgentCodes(append(codes, 123)...)
	} else if got := r.checkAgentCodes(codes...); len(slices.Compact(got)) > 1 {
		t.Errorf("the agents ended with the exit codes %d, want the same from all", got)
	}
	for _, name := range []string{"alive", "mixed"} {
		if text, err := os.ReadFile(filepath.Join(r.records(), name)); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
	r.checkBeats()
	found, _ := filepath.Glob(filepath.Join(r.records(), "[0-9]"))
	if len(found) > r.attempt+1 || len(found) < min(r.attempt, restartsPerJob) {
		t.Errorf("%d attempts have started, want %d", len(found), r.attempt+1)
	}
	if code == 0 && r.torch {
		r.checkTorch()
	} else if code == 0 {
		v, err := loadSnapshot(r.records())
		want := trainedUntil(v.Epoch, r.ranks)
		if err != nil || v != want || len(r.linesWith("parameters "+want.String())) != 1 {
			t.Errorf("the training ended with %v and printed %q, want %v (%v)", v,
				r.linesWith("parameters "), want, err)
		}
	} else {
		r.checkReport(codes, last)
	}
	if last.kills || r.lost {
		r.removeLeftovers()
	}
	if r.etcd {
		r.checkStore(code, last)
	}
}

// checkBeats checks that no process of an attempt ran when the next one had started.
func (r *restartJob) checkBeats() {
	var last time.Duration
	for attempt := range r.attempt + 1 {
		b := readBeats(r.t, r.records(), attempt)
		if len(b) == 0 { // a program with torch, or ended before its workers started
			continue
		}
		if b[0] < last {
			r.t.Errorf("attempt %d started %v before the end of the one before", attempt, last-b[0])
		}
		last = b[len(b)-1]
	}
}

// checkTorch compares the parameters with those of the undisturbed training, which is the first.
func (r *restartJob) checkTorch() {
	lines := r.linesWith("parameters ", "the same on all")
	if r.trained == nil {
		r.trained = lines
	}
	if len(lines) != 1 || !slices.Equal(lines, r.trained) {
		r.t.Errorf("the training printed %q, want %q", lines, r.trained)
	}
}

// codes are the exit codes of which the job has one. Workers that have lost their connections to
// those of an agent may fail before its lease in an etcd cluster expires.
func (r *restartJob) codes(code int, last *restartFault) []int {
	if r.etcd && last.moves {
		return []int{code, connectionCode}
	}
	return []int{code}
}

// connectionCode is the exit code of workers whose connections broke.
const connectionCode = 1

// checkReport checks the file of --report. A worker that failed is that which the fault names.
func (r *restartJob) checkReport(codes []int, last *restartFault) {
	var report struct {
		Kind     string
		Rank     int
		ExitCode int `json:"exit_code"`
		Attempt  int
	}
	text, err := os.ReadFile(r.report)
	if os.IsNotExist(err) && last.kills {
		return // the agent that writes it was killed
	}
	if err == nil {
		err = json.Unmarshal(text, &report)
	}
	attempt := min(r.attempt, restartsPerJob)
	before := last.at == between && report.Attempt == attempt-1
	if err != nil || !slices.Contains(codes, report.ExitCode) || report.Attempt != attempt && !before ||
		report.Kind == "failed" && last.ranks != nil && !slices.Contains(last.ranks, report.Rank) {
		r.t.Errorf("the report is %s, want exit code %d in attempt %d, ranks %v (%v)", text, codes,
			attempt, last.ranks, err)
	}
}

// restartTable counts, by fault and setting, the faults with the right effect, of those that ran.
func restartTable(jobs []*restartJob) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-40s", "fault")
	for _, s := range restartSettings {
		fmt.Fprintf(&b, "%10s", s.name)
	}
	right, ran := map[string]int{}, map[string]int{}
	var names []string
	count := func(f *restartFault, keys ...string) {
		for _, key := range keys {
			ran[key]++
			if f.right {
				right[key]++
			}
		}
	}
	for _, r := range jobs {
		for _, f := range r.faults {
			if f.ran {
				names = append(names, f.String())
				count(f, f.String()+r.restartSetting.name, "")
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		fmt.Fprintf(&b, "\n%-40s", name)
		for _, s := range restartSettings {
			key := name + s.name
			fmt.Fprintf(&b, "%10s", fmt.Sprintf("%d of %d", right[key], ran[key]))
		}
	}
	return fmt.Sprintf("%s\nright: %d of %d, in %d jobs\n", &b, right[""], ran[""], len(jobs))
}
