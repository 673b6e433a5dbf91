package signals

import (
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// put is what the store says of a signal that was put.
func put(key, value string) *clientv3.Event {
	return &clientv3.Event{
		Type: clientv3.EventTypePut,
		Kv:   &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), ModRevision: 7},
	}
}

// Only the first value of a key counts, and what cannot be read is not taken.
func TestFirstValueCounts(t *testing.T) {
	k := keys.Run{}.Attempt(0)
	var told []record.Kind
	s := New(nil, k, "a", Handlers{Verdict: func(v *record.Verdict) { told = append(told, v.Kind) }})
	if err := s.apply(put(k.Verdict(), "{")); err == nil || s.Reported() != nil {
		t.Errorf("a verdict that cannot be read: %v, %v", err, s.Reported())
	}
	for _, kind := range []record.Kind{record.Ended, record.Failed} {
		if err := s.apply(put(k.Verdict(), record.Encode(record.VerdictOf(kind)))); err != nil {
			t.Error(err)
		}
	}
	if v := s.Verdict(); len(told) != 1 || v == nil || v.Kind != record.Ended || s.VerdictAt().IsZero() {
		t.Errorf("told %q, the verdict is %v", told, v)
	}
	lost := record.VerdictOf(record.Lost)
	s = New(nil, k, "a", Handlers{Verdict: func(*record.Verdict) {}})
	for _, e := range []*clientv3.Event{
		put(k.Verdict(), record.Encode(record.VerdictOf(record.Failed))),
		put(k.Settled(), record.Encode(record.Settled{Cause: &lost})),
	} {
		if err := s.apply(e); err != nil {
			t.Error(err)
		}
	}
	if v, first := s.Verdict(), s.Reported(); v.Kind != record.Lost || first.Kind != record.Failed {
		t.Errorf("the verdict is %v, first %v", v, first)
	}
}

func TestHandlers(t *testing.T) {
	k := keys.Run{}.Attempt(0)
	left, asked := 0, make(chan string, 1)
	s := New(nil, k, "a", Handlers{
		Left:     func() { left++ },
		Question: func(value []byte) { asked <- string(value) },
	})
	world := put(k.World(), "")
	world.Type = clientv3.EventTypeDelete
	for _, e := range []*clientv3.Event{
		put(k.Left().Of("b"), "true"), put(k.Left().Of("a"), "true"), world,
		put(k.Question(), "q"), put("0/signal/unknown", ""),
	} {
		if err := s.apply(e); err != nil {
			t.Error(err)
		}
	}
	s.Close()
	if q := <-asked; left != 1 || q != "q" {
		t.Errorf("left %d times, asked %q", left, q)
	}
}
