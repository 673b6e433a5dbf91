package job

import (
	"maps"
	"slices"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/placement"
	"rdzv/rdzv/internal/record"
)

// agreement is how the world of an attempt comes about: the keys seat/ID, signal/exports and
// signal/world. A leader writes them together, the world last.
type agreement struct {
	config   *settings
	keys     keys.Attempt
	members  *members
	phase    *phase
	problems *problems
	seats    map[string]record.SeatValue // of a world that is not published yet
}

// agree assigns the seats of all members and publishes the world, or ends the job if it cannot
// start. A later attempt has the seats of the first one.
func (g *agreement) agree(t *turn, described record.World, e *ending) {
	g.phase.complete = true
	all := g.members.present()
	world, seats, problem := g.assign(all)
	for _, m := range all {
		if problem == nil && seats[m.ID].Has(0) {
			withRank0Problems(all, m.ID)
			g.phase.exports = m.Exports
		}
	}
	if !g.problems.mayStart(t, g.phase.exports.Without(all), problem) {
		e.want(g.problems.found)
		return
	}
	g.describe(&world, described)
	t.write("publish the world", []Cond{absent(g.keys.Verdict()), absent(g.keys.World())},
		g.ops(world, seats)...)
}

func (g *agreement) assign(
	all []record.Member,
) (record.World, map[string]record.Seat, *record.Problem) {
	if g.config.elastic() {
		world, seats := placement.AssignInTurn(all, g.phase.later)
		return world, seats, nil
	}
	if !g.phase.later {
		return placement.Assign(all, g.config.Spares)
	}
	seats := map[string]record.Seat{}
	for _, m := range g.members.all {
		seats[m.ID] = m.seat
	}
	return placement.WorldOf(all, seats), seats, nil
}

// describe says in the world of which attempt it is, and what may follow it.
func (g *agreement) describe(w *record.World, of record.World) {
	c := g.config
	w.Job, w.Attempt, w.Began = of.Job, of.Attempt, of.Began
	w.MaxRestarts, w.Replaced = c.Restarts.Max, g.members.replaced()
	if w.MaxRestarts > 0 {
		w.PeerTimeout, w.LostGrace = record.Seconds(c.PeerTimeout), record.Seconds(c.LostGrace)
	}
	w.Replaceable = c.Replaceable
	if c.elastic() {
		w.MaxTasks = c.Tasks
	}
}

// ops puts the seats and the exports and then the world.
func (g *agreement) ops(world record.World, seats map[string]record.Seat) []Op {
	ops := make([]Op, 0, len(g.members.all)+2)
	for _, m := range g.members.all {
		if !m.here {
			continue // a new leader has known it, and it has not returned
		}
		seat := record.SeatValue{Seat: seats[m.ID], Agent: g.config.identity(m.Member)}
		ops = append(ops, Op{Key: g.keys.Seats().Of(m.ID), Value: seat})
	}
	if g.phase.exports != nil {
		ops = append(ops, Op{Key: g.keys.Exports(), Value: *g.phase.exports})
	}
	return append(ops, Op{Key: g.keys.World(), Value: world})
}

// takeSeat notes the seat of an agent in a world that is about to be published.
func (g *agreement) takeSeat(id string, seat record.SeatValue) {
	if g.seats == nil {
		g.seats = map[string]record.SeatValue{}
	}
	g.seats[id] = seat
}

// takeWorld notes that the world is published: its members are those that have a seat. waiting are
// agents that were not members, gone those that are lost.
func (g *agreement) takeWorld(
	t *turn, w record.World, waiting []record.Member, gone map[string]bool,
) {
	g.phase.world, g.phase.complete, g.phase.agreed = &w, true, t.now
	if t.restoring {
		g.phase.agreed = w.Began // when this attempt began is not known: not before the job
	}
	all := make([]*member, 0, len(g.seats))
	for id, seat := range g.seats {
		if !seat.Full {
			all = append(all, g.seated(id, seat, waiting, gone))
		}
	}
	g.seats = nil
	g.members.replace(all)
}

// seated is the member that has a seat.
func (g *agreement) seated(
	id string, seat record.SeatValue, waiting []record.Member, gone map[string]bool,
) *member {
	m := g.members.byID[id]
	if m == nil {
		m = &member{lost: gone[id]}
		m.ID, m.Tasks = id, record.Unplaced(seat.Workers())
		if seat.Agent != nil {
			m.Member = *seat.Agent
		}
		if i := slices.IndexFunc(waiting, func(m record.Member) bool { return m.ID == id }); i >= 0 {
			m.Member = waiting[i]
		}
	}
	m.seat, m.here, m.settled = seat.Seat, true, m.settled || seat.Spare
	m.replaces, m.before = "", nil // the world says that
	return m
}

// forgetSeats deletes the seats that the leader before has written for a world that is not agreed:
// an agent may get none.
func (g *agreement) forgetSeats(t *turn) {
	if len(g.seats) == 0 || g.phase.complete {
		return
	}
	var ops []Op
	for _, id := range slices.Sorted(maps.Keys(g.seats)) {
		ops = append(ops, Op{Key: g.keys.Seats().Of(id)})
	}
	g.seats = nil
	t.write("delete the seats of a world that is not agreed", nil, ops...)
}
