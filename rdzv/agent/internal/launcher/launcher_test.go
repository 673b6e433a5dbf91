package launcher

import (
	"testing"

	"rdzv/envmap"
)

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
		if got := PMIxPort(test.env); got != test.want {
			t.Errorf("%s: port %d, want %d", name, got, test.want)
		}
	}
}
