package registration

import (
	"testing"
	"time"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// How long the workers of a run may outlive its agents depends on what is left of its latest attempt.
func TestOutlives(t *testing.T) {
	const leased, final = time.Second, time.Minute
	r := run{Leased: record.Seconds(leased), Final: record.Seconds(final)}
	w := func(attempt int) string { return record.Encode(record.World{Attempt: attempt, MaxRestarts: 1}) }
	failed := record.Encode(record.FailedVerdict("a", "node0", record.Worker{Code: 1}))
	ended := record.Encode(record.VerdictOf(record.Ended))
	settled := record.Encode(record.Settled{})
	for name, c := range map[string]struct {
		attempt                 int
		world, verdict, settled string // "" does not exist
		want                    time.Duration
	}{
		"before the first world":   {0, "", "", "", 0},
		"ended before it":          {0, "", ended, "", 0},
		"before the next world":    {1, "", "", "", leased},
		"another attempt":          {0, w(0), "", "", leased},
		"it failed":                {0, w(0), failed, "", leased},
		"a signal":                 {0, w(0), ended, "", final},
		"the last attempt":         {1, w(1), "", "", final},
		"it has failed":            {1, w(1), failed, "", final},
		"a world in no form":       {0, "{", "", "", final},
		"all have settled":         {1, w(1), failed, settled, 0},
		"settled before a restart": {0, w(0), failed, record.Encode(record.Settled{Restart: &record.Restart{}}), leased},
		"some have not settled":    {1, w(1), failed, record.Encode(record.Settled{Unsettled: "rank 0"}), final},
	} {
		k := keys.Run{}.Attempt(c.attempt)
		signals := map[string][]byte{}
		for key, value := range map[string]string{
			k.World(): c.world, k.Verdict(): c.verdict, k.Settled(): c.settled,
		} {
			if value != "" {
				signals[key] = []byte(value)
			}
		}
		if got := r.outlives(k, signals); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
