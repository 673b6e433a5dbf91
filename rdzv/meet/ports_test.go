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
