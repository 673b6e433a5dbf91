package identity

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"rdzv/envmap"
)

// A device mode that cannot be used with the devices of this node is a problem of this agent.
func TestTryDevices(t *testing.T) {
	env := envmap.Env{"HABANA_VISIBLE_DEVICES": "0,1"}
	for device, want := range map[envmap.DeviceMode]string{
		envmap.DeviceIndex: "", envmap.DeviceMask: "cannot mask HABANA_VISIBLE_DEVICES=0,1: ",
	} {
		devices := envmap.VisibleDevices(env, fstest.MapFS{})
		err := Maker{Devices: devices}.CheckDevices(env, envmap.TorchOptions{Device: device})
		var e *envmap.Error
		if (err == nil) != (want == "") || err != nil &&
			(!strings.HasPrefix(err.Error(), want) || !errors.As(err, &e) || e.Hint == "") {
			t.Errorf("device mode %s: %v, want %q and a hint", device, err, want)
		}
	}
}
