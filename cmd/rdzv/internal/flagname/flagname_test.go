package flagname

import "testing"

func TestIn(t *testing.T) {
	for text, want := range map[string]string{
		"give each job its own Config.Job NAME": "give each job its own --job NAME",
		"Config.PeerTimeout 1s: must be at least Config.Grace, 2s": "--peer-timeout 1s: must be at least " +
			"--grace, 2s",
		"Config.Restarts.Max 0 lets none take over":           "--max-restarts 0 lets none take over",
		"Config.Join names another store":                     "RDZV_JOIN names another store",
		"give Config.Etcd.Cert and Config.Etcd.Key":           "give --store-cert and --store-key",
		"is it there? Config.Store. All nodes":                "is it there? --store. All nodes",
		"cannot use Config.MinNodes 2 and Config.Nodes 4: no": "cannot use --nodes 2:4: no",
		"give Config.MinNodes MIN and Config.Nodes 3":         "give --nodes MIN:3",
		"give a smaller Config.MinNodes":                      "give --nodes a smaller MIN",
		"srun PROGRAM with Config.Spares N":                   "srun rdzv exec --spares N",
		// What the user has written stays.
		`Config.Job "PROGRAM with none uses the field"`: `--job "PROGRAM with none uses the field"`,
		`cannot read Config.Device "Config.Device \" Config.Set": no`: `cannot read --device ` +
			`"Config.Device \" Config.Set": no`,
		"Config.Job: rdzv exec -- ./Config.Job\nConfig.Job": "--job: rdzv exec -- ./Config.Job\n--job",
		"MyConfig.Job and Configure":                        "MyConfig.Job and Configure",
	} {
		if got := In(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// What a worker has written, and its program, stay in the JSON form of events.
func TestInEvent(t *testing.T) {
	const line = `{"type":"x","event":{"hint":"give \"Config.Job\" Config.Job","waiting":["node1: ]",` +
		`"node2: Config.ExportFile"],"message":"Config.Job","program":["Config.Job"],` +
		`"stderr":["Config.Job","\"text\":\"Config.Job\"","\"hint\":[\"Config.Job\"]"]}}`
	const want = `{"type":"x","event":{"hint":"give \"Config.Job\" --job","waiting":["node1: ]",` +
		`"node2: --export @FILE"],"message":"Config.Job","program":["Config.Job"],` +
		`"stderr":["Config.Job","\"text\":\"Config.Job\"","\"hint\":[\"Config.Job\"]"]}}`
	if got := string(InEvent([]byte(line))); got != want {
		t.Errorf("%s\nis   %s\nwant %s", line, got, want)
	}
}
