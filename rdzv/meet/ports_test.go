package meet

import (
	"slices"
	"testing"

	"rdzv/rdzv/secret"
)

func TestPorts(t *testing.T) {
	k := secret.DeriveKey(testToken, "job")
	public := k[:secret.PublicLen]
	got := portsOf(public, 29600, 29999)
	byName := portsOf(secret.PublicName("job"), 29600, 29999)
	if len(got) != sequenceLen || !slices.Equal(got, byName) {
		t.Errorf("ports by key %v, by the job's name %v; want the same", got, byName)
	}
	seen := map[int]bool{}
	for _, p := range portsOf(public, 10, 12) {
		seen[p] = true
	}
	if len(seen) != 3 || !seen[10] || !seen[11] || !seen[12] {
		t.Errorf("ports of a range of three: %v", seen)
	}
}

// The store listens on MASTER_PORT and the ports above it only if no other port is left.
func TestMasterPortIsLast(t *testing.T) {
	for _, row := range []struct {
		master      int
		ports, want []int
	}{
		{0, []int{5, 3}, []int{5, 3}},
		{100, []int{100, 99, 108, 109, 101}, []int{99, 109, 100, 108, 101}},
		{100, []int{100}, []int{100}},
	} {
		if got := masterLast(row.ports, row.master); !slices.Equal(got, row.want) {
			t.Errorf("ports %v with MASTER_PORT %d: %v, want %v", row.ports, row.master, got, row.want)
		}
	}
}
