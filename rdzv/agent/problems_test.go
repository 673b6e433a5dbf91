package agent

import (
	"strings"
	"testing"
	"testing/fstest"

	"rdzv/envmap"
	"rdzv/rdzv"
)

// A device mode that cannot be used with the devices of this node is a problem of this agent.
func TestTryDevices(t *testing.T) {
	env := envmap.Env{"HABANA_VISIBLE_DEVICES": "0,1"}
	for device, want := range map[envmap.DeviceMode]string{
		envmap.DeviceIndex: "", envmap.DeviceMask: "cannot mask HABANA_VISIBLE_DEVICES=0,1: ",
	} {
		devices := envmap.VisibleDevices(env, fstest.MapFS{})
		l := &Local{Config: Config{Device: device}, Devices: devices, env: env}
		problems := withProblem(nil, l.tryDevices())
		if want == "" {
			if len(problems) > 0 {
				t.Errorf("device mode %s: %+v, want no problem", device, problems)
			}
			continue
		}
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Text, want) {
			t.Errorf("device mode %s: %+v, want one problem that begins with %q", device, problems,
				want)
		} else if p := problems[0]; p.Kind != rdzv.OtherProblem || p.Hint == "" {
			t.Errorf("device mode %s: %+v, want kind %q and a hint", device, p, rdzv.OtherProblem)
		}
	}
}
