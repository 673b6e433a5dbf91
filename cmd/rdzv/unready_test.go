package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"rdzv/envmap"
)

// Devices that no worker can be given are known before the agents meet.
func TestTryDevices(t *testing.T) {
	for _, row := range []struct{ device, want string }{{"index", ""}, {"mask", "cannot narrow HABANA_VISIBLE_DEVICES=0,1: "}} {
		env := envmap.Env{"HABANA_VISIBLE_DEVICES": "0,1"}
		j := &job{options: &options{device: row.device}, devices: envmap.VisibleDevices(env, fstest.MapFS{})}
		problems := withProblem(nil, j.tryDevices(env))
		if row.want == "" && len(problems) > 0 || row.want != "" &&
			(len(problems) != 1 || problems[0].Code != codeUnready || problems[0].Hint == "" || !strings.HasPrefix(problems[0].Text, row.want)) {
			t.Errorf("--device %s: %+v, want %q", row.device, problems, row.want)
		}
	}
}
