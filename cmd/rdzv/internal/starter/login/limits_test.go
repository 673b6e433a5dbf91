package login

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"rdzv/cmd/rdzv/internal/starter/hosts"
)

// At most 64 logins are pending, and 8 through one jump host; a few hosts are not asked for theirs.
func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		hosts int
		jump  func(i int) string
		most  int
	}{
		"direct":         {200, func(int) string { return "" }, 64},
		"one jump host":  {200, func(int) string { return "gate" }, 8},
		"two jump hosts": {200, func(i int) string { return fmt.Sprint("gate", i%2) }, 16},
		"few":            {8, func(int) string { panic("asked") }, 8},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimits(c.hosts)
			var pending, most atomic.Int32
			full := make(chan struct{}) // closed when as many are pending as may be
			reached := sync.OnceFunc(func() { close(full) })
			var all sync.WaitGroup
			for i := range c.hosts {
				all.Go(func() {
					jump := func(context.Context, hosts.Host) string { return c.jump(i) }
					release := l.enter(t.Context(), hosts.Host{}, jump)
					n := pending.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					if int(n) >= c.most {
						reached()
					}
					<-full
					pending.Add(-1)
					release()
					release()
				})
			}
			all.Wait()
			if n := int(most.Load()); n != c.most {
				t.Errorf("%d were pending, want %d", n, c.most)
			}
		})
	}
}

// What is asked of ssh's config is the first jump host, or the command instead of one.
func TestJumpHost(t *testing.T) {
	f := newFake(t)
	s := &starting{Options: f.Options}
	for config, want := range map[string]string{
		"":                                    "",
		"user joe\nproxyjump none\n":          "",
		"user joe\nproxyjump joe@gate\n":      "joe@gate",
		"proxyjump gate,inner\nhostname n\n":  "gate",
		"proxycommand ssh -W %h:%p gate\n":    "ssh -W %h:%p gate",
		"hostname proxyjump\nproxyjumper x\n": "",
	} {
		f.write("jump", config)
		if got := s.jump(t.Context(), hosts.Host{Name: "node1"}); got != want {
			t.Errorf("%q: jump host %q, want %q", config, got, want)
		}
	}
}
