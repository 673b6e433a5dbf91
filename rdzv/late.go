package rdzv

import clientv3 "go.etcd.io/etcd/client/v3"

// open are the conditions that this attempt takes a member: it has not ended, and the world is not
// agreed, unless the agent joins late; then there is no later attempt.
func (s *Session) open() []clientv3.Cmp {
	noVerdict := absent(s.keys.verdict())
	switch {
	case !s.late:
		return []clientv3.Cmp{noVerdict, absent(s.keys.world())}
	case s.config.Attempt == 0: // its world stays
		return []clientv3.Cmp{noVerdict, present(s.keys.world()), absent(s.keys.run.latest())}
	}
	return []clientv3.Cmp{noVerdict, present(s.keys.world())}
}

// mayJoinLate tells whether this attempt runs, of a job with a variable number of agents, and
// another one may follow it.
func (s *Session) mayJoinLate() bool {
	w := s.world.Load()
	return s.Verdict() == nil && w != nil && w.MaxAgents > 0 && w.Attempt < w.MaxRestarts
}
