package registration

import (
	"testing"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// A run is over when its latest attempt has a verdict and no other attempt can follow.
func TestOver(t *testing.T) {
	k := keys.Run{}.Attempt(1)
	failed := record.Encode(record.FailedVerdict("a", "node0", record.Worker{Code: 1}))
	ended := record.Encode(record.VerdictOf(record.Ended))
	restarts := record.Encode(record.World{Attempt: 1, MaxRestarts: 2})
	last := record.Encode(record.World{Attempt: 2, MaxRestarts: 2})
	goesOn := record.Encode(record.Settled{Restart: &record.Restart{Attempt: 2}})
	for name, c := range map[string]struct {
		verdict, world, settled string // "" does not exist
		over                    bool
	}{
		"no verdict":              {"", restarts, "", false},
		"a failure":               {failed, restarts, "", false},
		"a failure, no world":     {failed, "", "", true},
		"the last attempt failed": {failed, last, "", true},
		"a signal":                {ended, restarts, "", true},
		"another attempt":         {failed, last, goesOn, false},
		"no other attempt":        {failed, restarts, record.Encode(record.Settled{}), true},
		"settled in no form":      {failed, restarts, "{", true},
		"a verdict in no form":    {"{", restarts, "", true},
	} {
		signals := map[string][]byte{}
		for key, value := range map[string]string{
			k.Verdict(): c.verdict, k.World(): c.world, k.Settled(): c.settled,
		} {
			if value != "" {
				signals[key] = []byte(value)
			}
		}
		if got := over(k, signals); got != c.over {
			t.Errorf("%s: %t, want %t", name, got, c.over)
		}
	}
}
