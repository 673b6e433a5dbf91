package job

// In a store that no agent hosts the others learn that an agent is lost when its lease expires. By
// then a worker has failed that had a connection to one of its workers, and the attempt has ended
// for that reason. While the agents settle the leader learns which of the two came first.

// findCause replaces the verdict if the worker that failed first has lost its connection to one of
// an agent that was lost before: the agent has not renewed its lease since the worker failed.
func (s *State) findCause() {
	e := &s.attempt.end
	if !s.config.Elected || !e.verdict.MayBeConsequence() {
		return
	}
	failedAt := e.verdictAt.Add(-e.verdict.ReportDelay)
	var first *member
	for _, m := range s.attempt.members.all {
		silent := !m.lostAt.IsZero() && m.lostAt.Sub(failedAt) <= s.config.LeaseTTL+s.config.LeaseLag
		if silent && (first == nil || m.lostAt.Before(first.lostAt)) {
			first = m
		}
	}
	if first != nil {
		e.cause = new(s.lossOf(first))
		e.verdict = e.cause
	}
}
