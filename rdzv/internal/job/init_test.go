package job

import "testing"

// A worker that has ended after its agent had looked is not reported as missing.
func TestUnreached(t *testing.T) {
	m := &member{reached: &Reached{Missing: []Unreached{{Rank: 1}, {Rank: 2}}}}
	if got := m.unreached(); len(got) != 2 {
		t.Errorf("missing %v, want ranks 1 and 2", got)
	}
	m.ended = []Worker{{Rank: 1}}
	if got := m.unreached(); len(got) != 1 || got[0].Rank != 2 {
		t.Errorf("missing %v, want rank 2", got)
	}
	m.settled = true
	if got := m.unreached(); len(got) != 0 {
		t.Errorf("missing %v after the agent has settled", got)
	}
}
