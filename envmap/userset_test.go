package envmap

import (
	"strings"
	"testing"
)

// RANK and WORLD_SIZE are used if the user says so, and identify no launcher by themselves.
func TestUserSet(t *testing.T) {
	none := placed(None, Unknown, Unknown, Unknown, Unknown, Unknown, Unknown)
	for _, row := range []struct {
		name, env string
		choice    Launcher
		want      Placement
		unclaimed string
	}{
		{"left over", "RANK=0 WORLD_SIZE=2", "", none, "RANK=0 and WORLD_SIZE=2 are set"},
		{
			"left over, with torchrun's run ID", "RANK=0 WORLD_SIZE=2 TORCHELASTIC_RUN_ID=x", "",
			none,
			"RANK=0 and WORLD_SIZE=2 are set",
		},
		{"no rank", "WORLD_SIZE=2", "", none, "WORLD_SIZE=2 is set"},
		{"no size", "RANK=3", "", none, "RANK=3 is set"},
		{"size 1", "RANK=0 WORLD_SIZE=1", "", none, ""},
		{"not a size", "RANK=0 WORLD_SIZE=many", "", none, ""},
		{"from rdzv env", "RANK=0 WORLD_SIZE=4 LOCAL_RANK=0 RDZV_DETECTED=none", "", none, ""},
		{"ignored", "RANK=0 WORLD_SIZE=2", None, none, ""},
		{"Volcano", "RANK=1 WORLD_SIZE=2 MASTER_ADDR=node1 MASTER_PORT=23456", UserSet,
			placed(UserSet, 1, 2, Unknown, Unknown, Unknown, Unknown), ""},
		{"AzureML", "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 NODE_RANK=1 MASTER_ADDR=node1", UserSet,
			placed(UserSet, 5, 8, 1, Unknown, 1, Unknown), ""},
		{"torchrun's names",
			"RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 GROUP_RANK=1 GROUP_WORLD_SIZE=2",
			UserSet,
			placed(UserSet, 5, 8, 1, 4, 1, 2), ""},
		{"in a pod", "RANK=1 WORLD_SIZE=2 KUBERNETES_SERVICE_HOST=10.0.0.1", UserSet,
			placed(UserSet, 1, 2, Unknown, Unknown, Unknown, Unknown), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			env := ParseEnv(strings.Fields(row.env))
			p := detected(t, env, row.choice)
			wantPlacement(t, p, row.want)
			if p.Unclaimed != row.unclaimed {
				t.Errorf("unclaimed %q, want %q", p.Unclaimed, row.unclaimed)
			}
			if want := env["MASTER_ADDR"]; p.Master != want {
				t.Errorf("master %q, want %q", p.Master, want)
			}
		})
	}
	wantError(t, Env{"WORLD_SIZE": "8"}, UserSet, "WORLD_SIZE=8", "RANK")
	p := detected(t, ParseEnv(strings.Fields("RANK=0 WORLD_SIZE=2")), "")
	wantIgnored(t, p, "RANK=0, WORLD_SIZE=2", "no launcher is recognised by them")
}
