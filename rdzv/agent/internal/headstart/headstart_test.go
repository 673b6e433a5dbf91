package headstart

import (
	"testing"
	"time"

	"rdzv/internal/torchlib"
)

// step is what is seen of rank 0 at some time after its start, in milliseconds.
type step struct {
	elapsed, used, waited time.Duration
	loading               torchlib.Loading
}

// The head start is over when rank 0 has come far enough with the import of torch, however fast its
// machine is; when it has not begun that in time; or at last when it takes too long.
func TestHeadStart(t *testing.T) {
	const not, mapped, relocated = torchlib.NotLoading, torchlib.Mapped, torchlib.Relocated
	for name, steps := range map[string][]step{ // at the last one it is over
		"fast machine": {
			{20, 20, 0, mapped}, {60, 60, 0, mapped}, {90, 90, 0, mapped}, {100, 100, 0, relocated},
		},
		"slow machine": {{100, 90, 0, not}, {500, 490, 0, mapped}, {1900, 1900, 0, relocated}},
		"relocated early": {
			{80, 80, 0, not}, {90, 90, 0, mapped}, {140, 140, 0, relocated}, {280, 280, 0, relocated},
			{290, 290, 0, relocated},
		},
		"imports much before": {
			{190, 190, 0, not}, {200, 200, 0, mapped}, {300, 300, 0, relocated}, {400, 400, 0, relocated},
		},
		"busy machine": {
			{300, 30, 260, not}, {400, 40, 340, mapped}, {3000, 150, 2800, relocated},
			{3100, 160, 2900, relocated},
		},
		"no torch":                  {{190, 190, 0, not}, {200, 200, 0, not}},
		"no torch, on busy machine": {{900, 90, 710, not}, {910, 90, 710, not}},
		"CPU time is not known":     {{60, 0, 0, mapped}, {90, 0, 0, relocated}},
		"never relocated":           {{60, 60, 0, mapped}, {10199, 9000, 0, mapped}, {10200, 9000, 0, mapped}},
	} {
		h := headStart{limit: 200 * time.Millisecond}
		for i, s := range steps {
			loading := func() torchlib.Loading { return s.loading }
			ms := time.Millisecond
			over := h.over(s.elapsed*ms, s.used*ms, s.waited*ms, loading)
			if want := i == len(steps)-1; over != want {
				t.Errorf("%s: after %d ms it is over: %t", name, s.elapsed, over)
			}
		}
	}
}
