package turn

import (
	"testing"

	"rdzv/envmap"
)

func TestTurnOf(t *testing.T) {
	openMPI := func(local, size int) envmap.Placement {
		return envmap.Placement{Launcher: envmap.OpenMPI4, LocalRank: local, LocalSize: size}
	}
	hydra := openMPI(0, 4)
	hydra.Launcher = envmap.Hydra
	var none First
	failed := func(own bool, local int) First { return First{true, own, local} }
	elsewhere := failed(false, envmap.Unknown)
	for name, c := range map[string]struct {
		place  envmap.Placement
		env    envmap.Env
		code   int
		parent string
		want   Turn
		first  First
	}{
		"last of 4":     {openMPI(3, 4), nil, 7, "mpirun", AtOnce, none},
		"third of 4":    {openMPI(2, 4), nil, 7, "mpirun", AfterSIGCONT, none},
		"first of 4":    {openMPI(0, 4), nil, 7, "orted", EndsWaits, none},
		"first of 2":    {openMPI(0, 2), nil, 7, "orted", EndsWaits, none},
		"unknown":       {openMPI(envmap.Unknown, envmap.Unknown), nil, 7, "mpirun", AtOnce, none},
		"alone":         {openMPI(0, 1), nil, 7, "orted", AtOnce, none},
		"first of 64":   {openMPI(0, 64), nil, 7, "mpirun", EndsWaits, none},
		"success":       {openMPI(0, 4), nil, 0, "mpirun", AtOnce, none},
		"a script":      {openMPI(0, 4), nil, 7, "sh", AtOnce, none},
		"a dead mpirun": {openMPI(0, 4), nil, 7, "", AtOnce, none},
		"Hydra":         {hydra, nil, 7, "mpirun", AtOnce, none},
		"no abort": {openMPI(0, 4), envmap.Env{"OMPI_MCA_orte_abort_on_non_zero_status": "0"},
			7, "mpirun", AtOnce, none},
		"a longer wait": {openMPI(0, 4), envmap.Env{"OMPI_MCA_odls_base_sigkill_timeout": "2"},
			7, "mpirun", AtOnce, none},
		"recovery": {openMPI(0, 4), envmap.Env{"OMPI_MCA_orte_enable_recovery": "1"},
			7, "mpirun", AtOnce, none},
		"the failed one":           {openMPI(0, 4), nil, 7, "mpirun", AtOnce, failed(true, 0)},
		"second, the first failed": {openMPI(1, 4), nil, 7, "mpirun", EndsWaits, failed(false, 0)},
		"third, the first failed":  {openMPI(2, 4), nil, 7, "mpirun", AfterSIGCONT, failed(false, 0)},
		"third, the last failed":   {openMPI(2, 4), nil, 7, "mpirun", AfterSIGCONT, failed(false, 3)},
		"first, the last failed":   {openMPI(0, 4), nil, 7, "mpirun", EndsWaits, failed(false, 3)},
		"first of its agent, the last failed": {openMPI(0, 4), nil, 7, "mpirun", EndsWaits,
			failed(true, 3)},
		"last, one elsewhere":  {openMPI(3, 4), nil, 7, "orted", AfterSIGCONT, elsewhere},
		"first, one elsewhere": {openMPI(0, 4), nil, 7, "orted", EndsWaits, elsewhere},
		"alone, one elsewhere": {openMPI(0, 1), nil, 7, "orted", EndsWaits, elsewhere},
		"unknown, the failed one": {openMPI(envmap.Unknown, envmap.Unknown), nil, 7, "orted",
			AtOnce, failed(true, 0)},
		"unknown, one elsewhere": {openMPI(envmap.Unknown, envmap.Unknown), nil, 7, "orted",
			AfterSIGCONT, elsewhere},
	} {
		if got := turnOf(c.place, c.env, c.code, c.parent, c.first); got != c.want {
			t.Errorf("%s: turn %d, want %d", name, got, c.want)
		}
	}
}
