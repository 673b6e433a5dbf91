package job

import (
	"testing"
	"time"

	"rdzv/rdzv/internal/record"
)

// Missing agents are lost after some time unless they have registered again: first the spares.
func TestDeclareLost(t *testing.T) {
	a := agents{present: map[string]*record.Member{}, gone: map[string]bool{}}
	for _, id := range []string{"seated", "back", "spare", "left"} {
		a.register(id, record.Member{ID: id})
	}
	for _, id := range []string{"seated", "back", "spare", "left"} {
		a.deregister(base, id, time.Second)
	}
	a.register("back", record.Member{ID: "back"})
	a.remove("left", nil)
	isSpare := func(id string) bool { return id == "spare" }
	early := &turn{now: base}
	if a.declareLost(early, isSpare); len(early.writes) > 0 {
		t.Errorf("too early: %v", early.writes)
	}
	due := &turn{now: base.Add(time.Second)}
	a.declareLost(due, isSpare)
	a.declareLost(due, isSpare) // what is on its way is not written again
	if len(due.writes) != 2 || due.writes[0].Ops[0].Key != "lost/spare" ||
		due.writes[1].Ops[0].Key != "lost/seated" {
		t.Fatalf("%v, want that spare is lost, then seated", due.writes)
	}
	loss := due.writes[1].Ops[0].Value.(record.Loss)
	if loss.Ended || loss.Ago != time.Second || loss.Agent.ID != "seated" {
		t.Errorf("%+v", loss)
	}
}
