package job

import (
	"maps"
	"slices"
	"time"
)

// The world of an attempt: the keys seat/ID, signal/exports and signal/world.

// agree assigns the seats of all members and publishes the world, or ends the job if it cannot
// start. A later attempt has the seats of the first one.
func (s *State) agree(now time.Time, w *writes) {
	a := s.attempt
	a.gather.complete = true
	all := a.members.present()
	world, seats, problem := s.assign(all)
	var exports *Exports
	for _, m := range all {
		if problem == nil && seats[m.ID].Rank == 0 {
			withRank0Problems(all, m.ID)
			exports = m.Exports
		}
	}
	a.gather.exports = exports
	if exports != nil && exports.Confirm {
		// they report their problems and facts again
	} else if v := s.check(all, problem); problem != nil || s.ends(v) {
		a.end.want(v)
		return
	}
	world.Job, world.Attempt, world.Began = s.config.Job, a.number, s.past.began
	if world.Began.IsZero() {
		world.Began = now.UTC()
	}
	s.describe(&world)
	w.add("publish the world", []Cond{absent(a.keys.verdict()), absent(a.keys.world())},
		s.worldOps(world, seats, exports)...)
}

// describe says in the world what may follow it.
func (s *State) describe(w *World) {
	w.MaxRestarts, w.Replaced = s.config.Restarts.Max, s.replaced()
	if w.MaxRestarts > 0 {
		w.PeerTimeout, w.LostGrace = s.config.PeerTimeout, s.config.LostGrace
	}
	w.Replaceable = s.config.Replaceable
	if s.elastic() && s.config.Check == nil {
		w.MaxAgents = s.config.Agents
	}
}

// worldOps puts the seats and the exports and then the world.
func (s *State) worldOps(world World, seats map[string]Seat, exports *Exports) []Op {
	a := s.attempt
	peers := s.assignProbeTargets(a.members.present())
	ops := make([]Op, 0, len(a.members.all)+2)
	for _, m := range a.members.all {
		if !m.here {
			continue // a new leader has known it, and it has not returned
		}
		seat := SeatValue{Seat: seats[m.ID], Peers: peers[m.ID], Agent: s.identity(m.Member)}
		ops = append(ops, Op{Key: a.keys.seat(m.ID), Value: seat})
	}
	if exports != nil {
		ops = append(ops, Op{Key: a.keys.exports(), Value: *exports})
	}
	return append(ops, Op{Key: a.keys.world(), Value: world})
}

// identity is what a later leader has to know of an agent whose own keys are gone; nil if there is
// no later leader.
func (s *State) identity(m Member) *Member {
	if !s.config.Elected {
		return nil
	}
	return new(m.Identity())
}

func (s *State) assign(all []Member) (World, map[string]Seat, *Problem) {
	if s.elastic() {
		world, seats := s.assignInTurn(all)
		return world, seats, nil
	}
	if !s.attempt.later {
		return Assign(all, s.config.Spares)
	}
	seats := map[string]Seat{}
	for _, m := range s.attempt.members.all {
		seats[m.ID] = m.seat
	}
	return WorldOf(all, seats), seats, nil
}

// takeSeat notes the seat of an agent: of a world that is about to be published, or that of an
// agent that has joined late.
func (s *State) takeSeat(now time.Time, id string, value any) {
	a := s.attempt
	seat, err := read[SeatValue](value)
	if err != nil {
		return
	}
	if a.gather.world != nil || seat.Full {
		s.takeLate(id, seat)
		return
	}
	if a.gather.seats == nil {
		a.gather.seats = map[string]SeatValue{}
	}
	a.gather.seats[id] = seat
}

// takeWorld notes that the world is published: its members are those that have a seat.
func (s *State) takeWorld(now time.Time, w World) {
	a := s.attempt
	g := &a.gather
	if g.world != nil {
		return
	}
	g.world, g.complete, g.agreed = &w, true, now
	if s.past.began.IsZero() {
		s.past.began = w.Began
	}
	if s.restoring {
		g.agreed = w.Began // when this attempt began is not known: not before the job
	}
	all := make([]*member, 0, len(g.seats))
	for id, seat := range g.seats {
		if !seat.Full {
			all = append(all, s.seated(id, seat))
		}
		a.late.remove(id)
	}
	g.seats = nil
	launched := a.members.launched
	a.members.replace(all)
	a.members.launched = a.members.launched || launched
	s.takeEarly(now)
	for _, m := range all {
		if m.lost {
			s.loseRunning(now, m)
		}
	}
}

// seated is the member that has a seat.
func (s *State) seated(id string, seat SeatValue) *member {
	a := s.attempt
	m := a.members.byID[id]
	if m == nil {
		m = &member{Member: Member{ID: id, Slots: seat.Slots}, lost: s.agents.gone[id], deleted: true}
		if seat.Agent != nil {
			m.Member = *seat.Agent
		}
		waiting := slices.Concat(a.members.unseated, a.late.waiting)
		if i := slices.IndexFunc(waiting, func(m Member) bool { return m.ID == id }); i >= 0 {
			m.Member, m.deleted = waiting[i], false
		}
	}
	m.seat, m.peers, m.here, m.settled = seat.Seat, seat.Peers, true, m.settled || seat.Spare
	m.replaces, m.before = "", nil // the world says that
	return m
}

// forgetSeats deletes the seats that the leader before has written for a world that is not agreed:
// an agent may get none.
func (s *State) forgetSeats(w *writes) {
	g := &s.attempt.gather
	if len(g.seats) == 0 || g.complete {
		return
	}
	var ops []Op
	for _, id := range slices.Sorted(maps.Keys(g.seats)) {
		ops = append(ops, Op{Key: s.attempt.keys.seat(id)})
	}
	g.seats = nil
	w.add("delete the seats of a world that is not agreed", nil, ops...)
}
