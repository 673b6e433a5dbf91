package rdzv

import (
	"strings"
	"testing"

	"rdzv/rdzv/restart"
)

// A later leader finds the present attempt also if a path would be written in another way than the
// prefix or the name of the job.
func TestKeysAreNotPaths(t *testing.T) {
	t.Parallel()
	for prefix, job := range map[string]string{"/rdzv//alice/": "test", "./x/": "test", "/rdzv/": ".."} {
		t.Run(prefix+job, func(t *testing.T) {
			t.Parallel()
			j := startPlain(t)
			all := make([]*Session, 2)
			for i := range all {
				c := j.leased(i, 2)
				c.Job, c.Prefix, c.Lead.Restarts = job, prefix, restart.Policy{Max: 1}
				all[i] = j.joinWith(j.client(c.Self.ID), c)
			}
			j.worlds(all)
			all = j.restarted(all, "x")
			j.worlds(all)
			for _, key := range j.keysLeft() {
				if !strings.HasPrefix(key, prefix) {
					t.Errorf("key %q, want one with %q", key, prefix)
				}
			}
			l := j.leaderOf(all[0])
			l.cancel()
			if n := l.state.Attempt(); n != 1 {
				t.Errorf("a new leader leads attempt %d", n)
			}
			j.finish(all, succeeded)
			j.wantNothingLeft()
		})
	}
}
