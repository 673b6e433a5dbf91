package agent

import (
	"testing"
	"time"

	"rdzv/envmap"
	"rdzv/rdzv/restart"
)

// In a job with restarts the leader waits until it has noticed that an agent is lost.
func TestSettleTimeout(t *testing.T) {
	const peer = 10 * time.Second
	for _, test := range []struct {
		grace    time.Duration
		restarts int
		want     time.Duration
	}{
		{time.Second, 0, 6 * time.Second},
		{time.Second, 1, 15 * time.Second},
		{time.Minute, 1, 65 * time.Second},
	} {
		config := Config{Grace: test.grace, PeerTimeout: peer, Restarts: restart.Policy{Max: test.restarts}}
		if got := (&Local{Config: config}).settleTimeout(); got != test.want {
			t.Errorf("%v: settle timeout %v", test, got)
		}
	}
}

func TestPMIxPort(t *testing.T) {
	for name, test := range map[string]struct {
		env  envmap.Env
		want int
	}{
		"none":            {envmap.Env{"PMI_FD": "7"}, 0},
		"Open MPI 4":      {envmap.Env{"PMIX_SERVER_URI21": "995426304.0;tcp4://127.0.0.1:47027"}, 47027},
		"several":         {envmap.Env{"PMIX_SERVER_URI2": "x", "PMIX_SERVER_URI4": "p.0;tcp6://[::1]:41"}, 41},
		"a Unix socket":   {envmap.Env{"PMIX_SERVER_URI2": "usock:/tmp/pmix-71"}, 0},
		"an empty string": {envmap.Env{"PMIX_SERVER_URI2": ""}, 0},
	} {
		if got := pmixPort(test.env); got != test.want {
			t.Errorf("%s: port %d, want %d", name, got, test.want)
		}
	}
}
