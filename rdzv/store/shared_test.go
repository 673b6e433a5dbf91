package store

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"rdzv/rdzv/presence"
)

// Agents of a shared store get leases as short as they ask for, because it has no presence service,
// and their history does not stay for ever.
func TestShared(t *testing.T) {
	s, err := Start(within(t), Config{Dir: t.TempDir(), Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, s)
	want := int64(presence.MinTimeout.Seconds())
	granted, err := s.Client().Grant(within(t), want)
	if err != nil || granted.TTL != want {
		t.Errorf("lease of %d s, %v; want %d s", granted.TTL, err, want)
	}
	client := ordinaryClient(t, serve(t, s))
	_, err = presence.Open(within(t), client.ActiveConnection(), "agent", func() {})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("presence: %v, want %v", err, codes.Unimplemented)
	}
	c := s.etcd.Config()
	if c.AutoCompactionMode != "periodic" || c.AutoCompactionRetention != "5m" {
		t.Errorf("compaction %q %q", c.AutoCompactionMode, c.AutoCompactionRetention)
	}
}
