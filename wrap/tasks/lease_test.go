package tasks

import (
	"syscall"
	"testing"
	"time"

	"rdzv/internal/boottime"
	"rdzv/wrap"
)

// TestLease: what ends the tree of a runner that shares the lease of its agent with other runners.
func TestLease(t *testing.T) {
	const d = time.Second
	for _, c := range []struct {
		name, script string
		then         func(*wrap.Lease)
		code         int
		signal       syscall.Signal
		over         bool
	}{
		{"not renewed", "exec sleep 1000", nil, 0, syscall.SIGTERM, true},
		{"renewed", "sleep 2.5; exit 4", func(l *wrap.Lease) {
			tick := time.NewTicker(d / 10)
			defer tick.Stop()
			for range 30 {
				l.Renew(boottime.Now() + d)
				<-tick.C
			}
		}, 4, 0, false},
		{"released", "sleep 1.5; exit 4", (*wrap.Lease).Release, 4, 0, false},
		{"expired", "exec sleep 1000", func(l *wrap.Lease) {
			l.Renew(boottime.Now() + time.Hour)
			l.Expire()
		}, 0, syscall.SIGTERM, true},
		{"revoked", resistant, func(l *wrap.Lease) {
			l.Renew(boottime.Now() + time.Hour)
			l.Revoke()
		}, 0, syscall.SIGKILL, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, tasks := agentOf(t, 2)
			lease := &wrap.Lease{}
			var running []<-chan outcome
			for i, task := range tasks {
				done, _ := begin(t, task, wrap.Tree{
					Workers: []wrap.Worker{sh(t, "echo ready; "+c.script)}, Grace: time.Hour,
					Lease: lease, LeaseGrace: time.Hour,
				})
				running = append(running, done)
				list[i].stdout.want("ready")
			}
			lease.Renew(boottime.Now() + d)
			if c.then != nil {
				c.then(lease)
			}
			for _, done := range running {
				o := await(t, "Run", done)
				r := o.results[0]
				if over := r.Err == wrap.ErrLeaseOver; o.err != nil || r.Code != c.code ||
					r.Signal != c.signal || over != c.over {
					t.Errorf("Run = %+v, %v", r, o.err)
				}
			}
		})
	}
}
