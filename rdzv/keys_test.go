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
			p := startPlain(t)
			all := make([]*Session, 2)
			for i := range all {
				c := p.config(i, 2)
				c.Job, c.Prefix, c.Lead.Restarts = job, prefix, restart.Policy{Max: 1}
				all[i] = p.joinWith(p.client(c.Self.ID), c)
			}
			p.worlds(all)
			all = p.restarted(all, "x")
			p.worlds(all)
			for _, key := range p.keysLeft() {
				if !strings.HasPrefix(key, prefix) {
					t.Errorf("key %q, want one with %q", key, prefix)
				}
			}
			r := all[0].registration.(*leased)
			c, _, err := r.awaitTurn(p.ctx)
			if err != nil {
				t.Fatal(err)
			}
			l, err := r.resume(p.ctx, c, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			l.cancel()
			if l.config.Attempt != 1 {
				t.Errorf("a new leader leads attempt %d", l.config.Attempt)
			}
			p.finish(all, succeeded)
			p.wantNothingLeft()
		})
	}
}

func TestCheckName(t *testing.T) {
	for name, valid := range map[string]bool{
		"": true, "/": true, "/rdzv/": true, "/rdzv/alice/": true, "a": true, "...": true, "a.b": true,
		"a..b/": true, ".x/": true,
		"//": false, "/rdzv//alice/": false, "./x/": false, ".": false, "..": false, "/a/../b": false,
		"a/.": false,
	} {
		if err := CheckName(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}
