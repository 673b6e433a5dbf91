package job

import "testing"

// The workers start when all agents with seats have confirmed that they can; a value that cannot be
// read ends the job.
func TestConfirmation(t *testing.T) {
	m := in("", joinedAgent(0), joinedAgent(1), joinedAgent(2))
	m.all[2].seat.Spare = true
	w, exports := &World{Agents: 2}, &Exports{Confirm: true}
	var c confirmation
	var e ending
	for i, one := range m.all[:2] {
		c.take(one, Readiness{}, &e)
		c.take(one, Readiness{}, &e)
		c.take(m.all[2], Readiness{}, &e)
		if got := c.complete(w, exports); got != (i == 1) || c.complete(w, exports) {
			t.Errorf("complete %t after %d of 2", got, i+1)
		}
	}
	if c.complete(w, nil) || len(e.wanted) > 0 {
		t.Errorf("%v", e.wanted)
	}
	c.take(&member{Member: joinedAgent(3)}, []byte("{"), &e)
	if len(e.wanted) != 1 {
		t.Error("a value that cannot be read does not end the job")
	}
}
