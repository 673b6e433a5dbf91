package agent

import (
	"context"
	"testing"
	"testing/fstest"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv/agent/internal/peers"
	"rdzv/rdzv/meet"
)

// An agent that checks its node answers under the ID that it has, also when it describes itself
// again.
func TestAnswersUnderItsID(t *testing.T) {
	l := &Local{
		Config: Config{Nodes: 2, Check: &Check{}, Root: fstest.MapFS{}}, Agents: 2, Workers: 1,
		Placement: envmap.Placement{Launcher: envmap.None, LocalRank: envmap.Unknown},
	}
	conn := &connection{local: l, meeting: &meet.Meeting{}, addr: "127.0.0.1"}
	m := &membership{local: l, conn: conn, events: &reporter{events: func(Event) {}}}
	m.checking = &checking{Check: l.Config.Check, local: l, conn: conn, events: m.events}
	defer m.checking.stopAnswering()
	defer func() { m.port.Release() }()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	m.self = m.describe("first")
	rest := *l
	l.rest = make(chan *Local, 1)
	l.rest <- &rest
	self, err := m.prepare(ctx)
	if err != nil {
		t.Fatal(err)
	}
	asks := peers.NewClient(m.checking.peerKey(), time.Now)
	if _, err := asks.Measure(ctx, self.Answers, self.ID); self.ID != "first" || err != nil {
		t.Errorf("ID %q does not answer at %q: %v", self.ID, self.Answers, err)
	}
}
