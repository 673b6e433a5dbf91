package registration

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/store"
)

// The last agent that leaves a run that is over removes its keys, and its key run unless that is the
// one of a later run. If another agent has registered meanwhile it removes nothing.
func TestRemoveRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := store.Start(ctx, store.Config{Dir: t.TempDir(), Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for name, c := range map[string]struct {
		agent, later bool
		left         int64
	}{
		"the last agent":             {false, false, 0},
		"a later run":                {false, true, 1},
		"another agent":              {true, false, 3},
		"another agent, a later run": {true, true, 3},
	} {
		config := &Config{Job: name, Prefix: "/test/", JobTTL: time.Hour}
		r := newRun(kv.NewStore(ctx, s.Client()), config)
		own, err := s.Client().Grant(ctx, 60)
		if err != nil {
			t.Fatal(err)
		}
		r.of(own.ID, record.Member{ID: "a"})
		if _, err := r.Find(ctx); err != nil {
			t.Fatal(err)
		}
		put := func(key string, lease clientv3.LeaseID) {
			if err := r.store.Put(ctx, key, "x", lease); err != nil {
				t.Fatal(err)
			}
		}
		put(r.Keys.Latest(), r.JobLease)
		if c.agent {
			put(r.Keys.Agents().Of("b"), own.ID)
		}
		if c.later {
			put(r.name.Present(), own.ID)
		}
		r.remove(ctx)
		left, err := s.Client().Get(ctx, r.name.Prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil || left.Count != c.left {
			t.Errorf("%s: %v keys left, %v, want %d", name, left.Count, err, c.left)
		}
	}
}

// beforeGrant calls a function before it grants a lease.
type beforeGrant struct {
	clientv3.Lease
	call func()
}

func (b beforeGrant) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	b.call()
	return b.Lease.Grant(ctx, ttl)
}

// The last agent of the present run removes that while another one is about to replace it: the lease
// of the run that has not begun is revoked.
func TestRunIsRemovedWhileItIsReplaced(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, err := store.Start(ctx, store.Config{Dir: t.TempDir(), Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	client := s.Client()
	own, err := client.Grant(ctx, 60)
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(kv.NewStore(ctx, client), &Config{Job: "test", Prefix: "/test/", JobTTL: time.Hour})
	r.of(own.ID, record.Member{ID: "a"})
	if _, err := r.Find(ctx); err != nil {
		t.Fatal(err)
	}
	client.Lease = beforeGrant{client.Lease, func() { r.remove(ctx) }}
	if _, err := r.Find(ctx); err != ErrOtherRun {
		t.Errorf("found %v, want %v", err, ErrOtherRun)
	}
	left, err := client.Leases(ctx)
	if err != nil || len(left.Leases) != 1 || left.Leases[0].ID != own.ID {
		t.Errorf("leases %v, %v, want that of the agent alone", left, err)
	}
}
