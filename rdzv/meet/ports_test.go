package meet

import (
	"fmt"
	"testing"

	"rdzv/rdzv/secret"
)

func TestPorts(t *testing.T) {
	k := secret.DeriveKey(testToken, "job")
	public := k[:secret.PublicLen]
	got := portsOf(public, 29600, 29999, 8)
	if alone := portsOf(secret.PublicName("job"), 29600, 29999, 8); len(got) != 8 || fmt.Sprint(got) != fmt.Sprint(alone) {
		t.Errorf("ports %v; of the job alone %v", got, alone)
	}
	seen := map[int]bool{}
	for _, p := range portsOf(public, 10, 12, 8) {
		seen[p] = true
	}
	if len(seen) != 3 || !seen[10] || !seen[11] || !seen[12] {
		t.Errorf("a range of three gave %v", seen)
	}
	if first := portsOf(public, 1, 65535, 1); len(first) != 1 {
		t.Errorf("one port of all is %v", first)
	}
}
