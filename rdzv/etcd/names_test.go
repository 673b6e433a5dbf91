package etcd

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A resolver that does not answer is reported after a second, and not if a name is known by then or
// the attempt has ended.
func TestSilentResolverIsReportedSoon(t *testing.T) {
	const want = `cannot use etcd at http://nod1:2379: the resolver has not answered for "nod1"; ` +
		`http://nod2:2379: the resolver has not answered for "nod2"`
	for name, c := range map[string]struct {
		answers, stops time.Duration // of nod2, and of the caller
		reported       bool
	}{
		"silent":            {time.Hour, time.Minute, true},
		"one name is known": {slowResolver / 2, time.Minute, false},
		"stopped":           {time.Hour, slowResolver / 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, lines := time.Now(), []string{}
				stop := Cluster{URLs: []string{"http://nod1:2379", "http://nod2:2379"}}.watchNames(t.Context(),
					func(ctx context.Context, name string) error {
						after := map[string]time.Duration{"nod1": time.Hour, "nod2": c.answers}[name]
						select {
						case <-time.After(after):
						case <-ctx.Done():
						}
						return ctx.Err()
					},
					func(e *UnavailableError) {
						lines = append(lines, e.Error())
						if took := time.Since(begin); took != slowResolver || e.Hint() == "" {
							t.Errorf("it was reported after %v with the hint %q", took, e.Hint())
						}
					})
				time.Sleep(c.stops)
				stop()
				if reported := len(lines) == 1 && lines[0] == want; reported != c.reported || len(lines) > 1 {
					t.Errorf("reported %q", lines)
				}
			})
		})
	}
}
