package reach

import (
	"testing"
	"testing/synctest"
	"time"
)

// Whenever rank 0 begins to listen, that is found at most rank0Pause later, so that what is reported
// then is true.
func TestLateRank0IsFoundSoon(t *testing.T) {
	for _, listens := range []time.Duration{firstLook, 5 * time.Second, 76 * time.Second, time.Hour} {
		t.Run(listens.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				lookUntil(t.Context(), rank0Pause, func() bool { return time.Since(begin) >= listens })
				if late := time.Since(begin) - listens; late > rank0Pause {
					t.Errorf("it is found %v later", late)
				}
			})
		})
	}
}
