package agent

import (
	"strings"
	"testing"
	"testing/fstest"

	"rdzv/envmap"
	"rdzv/rdzv"
)

// Devices that no worker can be given are known before the agents meet.
func TestTryDevices(t *testing.T) {
	for _, row := range []struct{ device, want string }{{"index", ""}, {"mask", "cannot mask HABANA_VISIBLE_DEVICES=0,1: "}} {
		env := envmap.Env{"HABANA_VISIBLE_DEVICES": "0,1"}
		l := &Local{Config: Config{Device: envmap.DeviceMode(row.device)}, Devices: envmap.VisibleDevices(env, fstest.MapFS{}), env: env}
		problems := withProblem(nil, l.tryDevices())
		if row.want == "" && len(problems) > 0 || row.want != "" &&
			(len(problems) != 1 || problems[0].Kind != rdzv.OtherProblem || problems[0].Hint == "" || !strings.HasPrefix(problems[0].Text, row.want)) {
			t.Errorf("--device %s: %+v, want %q", row.device, problems, row.want)
		}
	}
}
