package envmap

import (
	"strings"
	"testing"
)

func TestSet(t *testing.T) {
	c := changes(t, Env{"X": "old"}, second, TorchOptions{Set: []string{
		"URL=tcp://{master_addr}:{master_port}",
		"ALL={rank}/{world_size} {local_rank}/{local_world_size} {node_rank}/{nodes} " +
			"{node_addr} {device} {ifname}",
		`JSON={{"rank":{rank}}}`, "X=", "OMP_NUM_THREADS=2", "RDZV_FOO=bar", "EQ=a=b",
	}})
	for name, want := range map[string]string{
		"URL": "tcp://10.0.0.1:29601", "ALL": "5/8 1/4 1/2 10.0.0.2 1 eth1", "JSON": `{"rank":5}`, "X": "",
		"OMP_NUM_THREADS": "2", "RDZV_FOO": "bar", "EQ": "a=b",
	} {
		if got := c.value(name); got != want || !c.sets(name) {
			t.Errorf("%s=%q, want %q", name, got, want)
		}
	}
	for bad, names := range map[string]string{
		"RANK=3": "set RANK", "MASTER_PORT=1": "MASTER_PORT", "RDZV_RUN_ID=x": "RDZV_RUN_ID",
		"RDZV_DEVICE_INDEX=1":       "RDZV_DEVICE_INDEX",
		"TORCHELASTIC_ERROR_FILE=x": "TORCHELASTIC_ERROR_FILE",
		"A={rnak}":                  "{rnak}",
		"A={":                       `"{"`, "A=x}": `"}"`, "A={rank": `"{"`, "A={}": "{}",
		"A": `"A"`, "=x": `"=x"`, "A=\x00": "NUL",
	} {
		_, err := TorchChanges(Env{}, second, TorchOptions{Set: []string{bad}})
		if err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("--set %q: error %v, want one with %s", bad, err, names)
		}
	}
	_, err := TorchChanges(Env{}, second, TorchOptions{Set: []string{"A={rnak}"}})
	if e, ok := err.(*Error); !ok || !strings.Contains(e.Hint, "{world_size}") ||
		!strings.Contains(e.Hint, "{ifname}") {
		t.Errorf("no hint with the known fields: %#v", err)
	}
	cpu := second
	cpu.Visible = Devices{Known: true}
	if c := changes(t, Env{}, cpu, TorchOptions{Set: []string{"D={device}"}}); c.value("D") != "" {
		t.Errorf("{device} is %q without a device", c.value("D"))
	}
}

func FuzzFill(f *testing.F) {
	for _, template := range []string{
		"tcp://{master_addr}:{master_port}", "{{}}", "{", "}{", "{rank}{rank}", "{rank", "a}",
	} {
		f.Add(template)
	}
	f.Fuzz(func(t *testing.T, template string) {
		text, err := fill(template, map[string]string{"rank": "5", "master_addr": "10.0.0.1"})
		if err != nil && text != "" {
			t.Errorf("fill(%q) = %q, %v", template, text, err)
		}
		if !strings.ContainsAny(template, "{}") && text != template {
			t.Errorf("fill(%q) = %q", template, text)
		}
		escaped := strings.NewReplacer("{", "{{", "}", "}}").Replace(template)
		if text, err := fill(escaped, nil); err != nil || text != template {
			t.Errorf("fill(%q) = %q, %v", escaped, text, err)
		}
	})
}
