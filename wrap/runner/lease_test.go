package runner

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// TestRenewalWakesNobody: a runner and its holder do not run when the lease is renewed.
func TestRenewalWakesNobody(t *testing.T) {
	p, task := oneTask(t)
	lease := &wrap.Lease{}
	lease.Renew(boottime.Now() + time.Hour)
	done, end := begin(t, task, wrap.Tree{
		Workers: []wrap.Worker{sh(t, "echo ready; exec sleep 1000")}, Lease: lease,
	})
	p.stdout.want("ready")
	before := int64(-1)
	eventually(t, "runner and holder wait", func() bool {
		last := before
		before = switches(t, p.Process.Pid) + switches(t, holderOf(t, p))
		return before == last
	})
	const renewals = 200
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range renewals {
		lease.Renew(boottime.Now() + time.Hour)
		<-tick.C
	}
	after := switches(t, p.Process.Pid) + switches(t, holderOf(t, p))
	if n := after - before; n > renewals/2 {
		t.Errorf("runner and holder have waited %d times during %d renewals", n, renewals)
	} else {
		t.Logf("runner and holder have waited %d times during %d renewals in 2 s", n, renewals)
	}
	end(nil)
	await(t, "Run", done)
}

// switches is how often the threads of a process have waited.
func switches(t *testing.T, pid int) (n int64) {
	t.Helper()
	files, _ := filepath.Glob("/proc/" + itoa(pid) + "/task/*/status")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
		line, _, _ := strings.Cut(after, "\n")
		count, _ := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		n += count
	}
	return n
}
