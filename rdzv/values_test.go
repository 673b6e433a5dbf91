package rdzv

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// put writes a value that no agent would write.
func (j *job) put(key, value string) {
	j.t.Helper()
	if _, err := j.admin.Put(j.ctx, key, value); err != nil {
		j.t.Fatal(err)
	}
}

var bad = map[string]struct{ value, want string }{
	"corrupt":       {"{", "unexpected end of JSON input"},
	"no object":     {"[1]", "cannot unmarshal array"},
	"empty":         {"", "unexpected end of JSON input"},
	"no version":    {`{"value":{}}`, "version 0 (this agent uses version 5"},
	"other version": {`{"v":6,"value":"a string where there was an object"}`, "version 6 (this agent uses version 5"},
	"other type":    {`{"v":5,"value":"text"}`, "cannot unmarshal string"},
	"oversized":     {`{"v":5,"value":{"text":"` + strings.Repeat("x", record.MaxValue) + `"}}`, "at most 524288 allowed"},
}

func TestInvalidWorldEndsTheSession(t *testing.T) {
	for name, b := range bad {
		t.Run(name, func(t *testing.T) {
			j := start(t, LeaderConfig{Tasks: 3})
			s := j.join(member(0))
			j.put(s.keys.World(), b.value)
			_, err := s.World(j.ctx)
			if err == nil || !strings.Contains(err.Error(), b.want) ||
				!strings.Contains(err.Error(), s.keys.World()) {
				t.Errorf("World: %v, want %q", err, b.want)
			}
		})
	}
}

func TestInvalidVerdictEndsTheJob(t *testing.T) {
	for name, b := range bad {
		t.Run(name, func(t *testing.T) {
			j := start(t, LeaderConfig{Tasks: 2})
			sessions := j.agents(2)
			j.worlds(sessions)
			j.put(sessions[0].keys.Verdict(), b.value)
			for i, s := range sessions {
				if cause := j.ended(s); !strings.Contains(cause.Error(), b.want) {
					t.Errorf("agent %d: %v, want %q", i, cause, b.want)
				}
			}
			within5s(t, "leaving", func() { j.finish(sessions, stopped) })
			if err := <-j.led; err != nil {
				t.Errorf("the leader: %v", err)
			}
		})
	}
}

func TestInvalidMemberEndsTheJob(t *testing.T) {
	values := map[string]struct{ value, want string }{
		"no workers": {record.Encode(Member{ID: "x", LocalSize: Unknown}),
			"0 workers (1 to 1024 allowed)"},
		"endless": {record.Encode(Member{ID: "x", LocalSize: Unknown, Tasks: Unplaced(1 << 40)}),
			"1 to 1024 allowed"},
		"of another id": {record.Encode(Member{ID: "y", LocalSize: Unknown, Tasks: Unplaced(1)}), `its member has id "y"`},
	}
	for name, b := range bad {
		values[name] = b
	}
	for name, b := range values {
		t.Run(name, func(t *testing.T) {
			j := start(t, LeaderConfig{Tasks: 2})
			s := j.join(member(0))
			j.put(s.keys.Members().Of("x"), b.value)
			_, err := s.World(j.ctx)
			if v, ok := err.(*Verdict); !ok || v.Kind != Unready ||
				!strings.Contains(v.Text, b.want) {
				t.Errorf("World: %v, want %q", err, b.want)
			}
			j.settle(s)
			within5s(t, "leaving", func() { j.leave(s) })
		})
	}
}

func TestInvalidOutcomeIsALoss(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	sessions := j.agents(2)
	j.worlds(sessions)
	j.put(sessions[1].keys.Outcomes().Of("agent-1"), `{"v":6}`)
	if v, ok := j.ended(sessions[0]).(*Verdict); !ok || v.Kind != Lost || v.Rank != 1 ||
		!strings.HasPrefix(v.Text,
			"lost the agent of rank 1 (pid 1001 on node1): cannot read its outcome: version 6") {
		t.Errorf("verdict %+v", v)
	}
	j.settle(sessions[0], stopped(0))
	j.leave(sessions[0])
}

// Values that were read already, and values of unknown agents, have no effect.
func TestDuplicatesAreIgnored(t *testing.T) {
	j := start(t, LeaderConfig{Tasks: 2})
	sessions := j.agents(2)
	w := j.worlds(sessions)[0]
	k := sessions[0].keys
	j.put(k.Members().Of("agent-1"), record.Encode(member(1)))
	j.put(k.World(), record.Encode(w))
	j.put(k.Progress().Of("stranger"), record.Encode(Outcome{Workers: []Worker{{}}}))
	j.put(k.Progress().Of("agent-1"), "{")
	j.put(k.Outcomes().Of("stranger"), record.Encode(Outcome{Workers: []Worker{{Code: 1}}}))
	if _, err := j.admin.Delete(j.ctx, k.World()); err != nil {
		t.Fatal(err)
	}
	j.settle(sessions[0], succeeded(0))
	j.settle(sessions[0], Worker{Code: 1})
	j.settle(sessions[1], succeeded(1))
	for i, s := range sessions {
		if sum := j.leave(s); sum.Verdict.Kind != Done {
			t.Errorf("agent %d: %v", i, sum.Verdict)
		}
	}
}

func TestKeysOfUnusualJobNames(t *testing.T) {
	names := []string{"a", "a/0", "a/0/", "/", "", "..", "a b", "ü", "a%2F0", "\x00",
		strings.Repeat("long", 64)}
	seen := map[string]string{}
	for _, name := range names {
		for attempt := range 11 {
			k := keys.OfJob(DefaultPrefix, name).Only().Attempt(attempt)
			label := fmt.Sprintf("attempt %d of %q", attempt, name)
			for prefix, other := range seen {
				if strings.HasPrefix(k.Prefix, prefix) || strings.HasPrefix(prefix, k.Prefix) {
					t.Errorf("%s is within %s", label, other)
				}
			}
			seen[k.Prefix] = label
		}
	}
	for _, name := range names {
		j := start(t, LeaderConfig{Job: name, Tasks: 1})
		s, err := Join(j.ctx, j.admin, Config{Job: cmp.Or(name, "test"), Self: member(0)})
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if w, err := s.World(j.ctx); err != nil || w.Job != cmp.Or(name, "test") {
			t.Errorf("%q: world of %q, %v", name, w.Job, err)
		}
		j.settle(s, succeeded(0))
		j.leave(s)
	}
}

func TestJoinRejectsInvalidMembers(t *testing.T) {
	for name, m := range map[string]Member{
		"no id":      {LocalSize: 1, Tasks: Unplaced(1)},
		"a path":     {ID: "a/b", LocalSize: 1, Tasks: Unplaced(1)},
		"long id":    {ID: strings.Repeat("x", 65), LocalSize: 1, Tasks: Unplaced(1)},
		"no workers": {ID: "a", LocalSize: 1},
		"too many":   {ID: "a", LocalSize: 1, Tasks: Unplaced(MaxSlots + 1)},
		"no kind":    {ID: "a", LocalSize: 1, Tasks: Unplaced(1), Problems: []Problem{{Text: "broken"}}},
		"no text":    {ID: "a", LocalSize: 1, Tasks: Unplaced(1), Problems: []Problem{{Kind: OtherProblem}}},
		"two tasks without ranks": {
			ID: "a", LocalSize: 2, Tasks: append(Unplaced(1), Task{Rank: 1, Slots: 1})},
		"too many in all": {
			ID: "a", LocalSize: 2, Tasks: append(ranked(0, 0), Task{Rank: 1, Slots: MaxSlots})},
		"no ranks": {ID: "a", Tasks: Unplaced(1)},
		"no rank":  {ID: "a", LocalSize: 1, Tasks: []Task{{Rank: Unknown - 1, Slots: 1}}},
	} {
		if _, err := Join(t.Context(), nil, Config{Job: "test", Self: m}); err == nil {
			t.Errorf("%s: joined", name)
		}
	}
}

func TestInvalidConfigs(t *testing.T) {
	for _, c := range []LeaderConfig{{}, {Job: "test"}, {Tasks: 2}} {
		if _, err := NewLeader(t.Context(), nil, c); err == nil {
			t.Errorf("leads %d tasks of job %q", c.Tasks, c.Job)
		}
	}
	if _, err := Join(t.Context(), nil, Config{Self: member(0)}); err == nil {
		t.Error("joined a job without a name")
	}
}

// The outcome of an agent with the maximum number of workers and long texts is not too large.
func TestLargestOutcomeIsReadable(t *testing.T) {
	workers := make([]Worker, MaxSlots)
	for i := range workers {
		workers[i] = Worker{Rank: 1 << 30, LocalRank: i, PID: 1 << 30, Signal: 64, Stopped: true,
			RanFor: 1 << 60, Code: 1, Text: strings.Repeat("\x01", 100<<10)}
	}
	details := make([]Detail, MaxSlots)
	for i := range details {
		details[i] = Detail{Rank: 1 << 30, Start: 1 << 50, Init: 1 << 50, FirstOutput: 1 << 50,
			End: 1 << 50, Stderr: []string{
				strings.Repeat("\x01", 100<<10), strings.Repeat("\x02", 100<<10), "last",
			}}
	}
	all := record.NewOutcome("node0", workers)
	all.Details = record.ClippedDetails(details)
	o, err := record.Decode[Outcome]([]byte(record.Encode(all)))
	if err != nil || len(o.Workers) != len(workers) || o.Workers[0].Text == "" {
		t.Errorf("%d workers, %v", len(o.Workers), err)
	}
	if n := len(o.Details); n != MaxSlots || !slices.Contains(o.Details[0].Stderr, "last") {
		t.Errorf("%d details, of which the first has the stderr %.100q", n, o.Details[0].Stderr)
	}
	if len(details[0].Stderr[0]) != 100<<10 {
		t.Error("the caller's details were changed")
	}
	if len(workers[0].Text) != 100<<10 {
		t.Error("the caller's workers were changed")
	}
}

func TestClip(t *testing.T) {
	for _, text := range []string{
		"", "short", "\xff", strings.Repeat("é", record.MaxText), strings.Repeat("x", record.MaxText),
		strings.Repeat("x", record.MaxText+1),
	} {
		got := record.Clip(text)
		if len(got) > record.MaxText || !utf8.ValidString(got) {
			t.Errorf("%.20q...: %d bytes %.20q", text, len(got), got)
		}
		if len(text) <= record.MaxText && utf8.ValidString(text) && got != text {
			t.Errorf("%.20q became %.20q", text, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, b := range bad {
		f.Add([]byte(b.value[:min(len(b.value), 100)]))
	}
	f.Add([]byte(record.Encode(member(1))))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := record.Decode[Member](b)
		if err != nil {
			return
		}
		if again, err := record.Decode[Member]([]byte(record.Encode(m))); err != nil ||
			!reflect.DeepEqual(again, m) {
			t.Errorf("%+v became %+v, %v", m, again, err)
		}
	})
}
