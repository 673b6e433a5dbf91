package rdzv

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/internal/registration"
	"rdzv/rdzv/restart"
)

// exists tells whether there is a key at a revision; 0 is the present one.
func (j *job) exists(key string, revision int64) bool {
	j.t.Helper()
	found, err := j.admin.Get(j.ctx, key, clientv3.WithRev(revision))
	if err != nil {
		j.t.Fatal(err)
	}
	return len(found.Kvs) > 0
}

// The key of an agent, and its place on its host, exist until it is lost, or leaves in order. Only a
// loss has a reason. Where an agent hosts the store, that is written in the same transaction.
func TestKeysOfAnAgent(t *testing.T) {
	inEachStore(t, func(t *testing.T, start starter) {
		for name, test := range map[string]struct {
			end  func(j *job, s *Session)
			lost bool
		}{
			"it is killed": {(*job).lose, true},
			"it leaves without a goodbye": {func(j *job, s *Session) {
				s.close(errLeft, registration.Nothing)
			}, true},
			"it withdraws": {func(j *job, s *Session) {
				j.withdraws(s)
				j.hasLeft(s)
			}, false},
		} {
			t.Run(name, func(t *testing.T) {
				j := start(t, LeaderConfig{Tasks: 3, Rules: Rules{Spares: 1, Restarts: restart.Policy{Max: 1}}})
				all := j.withSpares(3)
				j.worlds(all)
				spare := all[2]
				id, run := spare.config.Self.ID, j.run
				agent, lost := run.Agents().Of(id), run.Lost().Of(id)
				place := run.Place(spare.config.Self.Node, spare.config.Self.NodeRank)
				if !j.exists(agent, 0) || !j.exists(place, 0) || j.exists(lost, 0) {
					t.Error("while it is alive it has not its key and its place alone")
				}
				test.end(j, spare)
				j.await(agent, false)
				j.await(place, false)
				if test.lost {
					j.await(lost, true)
					why, err := j.admin.Get(j.ctx, lost)
					if err != nil {
						t.Fatal(err)
					}
					at := why.Kvs[0].ModRevision
					if j.exists(agent, at) || j.store != nil && !j.exists(agent, at-1) {
						t.Error("its key was not deleted when the reason was written")
					}
				}
				for _, sum := range j.finish(all[:2], succeeded) {
					if sum.Verdict.Kind != Done {
						t.Errorf("%v", sum.Verdict)
					}
				}
				if j.store != nil && j.exists(lost, 0) != test.lost {
					t.Errorf("it is lost: %t", !test.lost)
				}
			})
		}
	})
}

// An agent that is lost is no member, also if it has not learned of that.
func TestLostAgentCannotJoin(t *testing.T) {
	j := start(t, elastic(3))
	v := j.join(hosted(0))
	j.put(v.keys.Run.Lost().Of("agent-1"), record.Encode(record.Loss{}))
	if a := <-j.arrives(hosted(1)); !noPlace(a.err) {
		t.Errorf("it has joined: %v", a.err)
	}
	if j.exists(v.keys.Run.Agents().Of("agent-1"), 0) {
		t.Error("it has a key")
	}
	all := []*Session{v, j.join(hosted(2))}
	j.worlds(all)
	j.finish(all, succeeded)
}
