package agent

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/token"
	"rdzv/rdzv/meet"
)

// The join line contains the job key: an event has it only if the Config allows that, and the JSON
// form of an event never.
func TestNoticed(t *testing.T) {
	addr := netip.MustParseAddr("10.0.0.6")
	withKey := meet.NoPeerYet{
		Waited: rdzv.Seconds(3 * time.Second), Store: addr, JoinLine: "RDZV_JOIN=10.0.0.6:1/KEY", Secret: true,
	}
	alone := withKey
	alone.JoinLine = ""
	insecure := meet.NoPeerYet{Waited: rdzv.Seconds(3 * time.Second), JoinLine: "RDZV_JOIN=10.0.0.6:1"}
	other := meet.DifferentToken{Host: "node2", Addr: addr}
	advised := other
	advised.Hint = "copy the token of one node to the other " +
		"(here it is /home/u/token), and start rdzv there again; or put before the command " +
		"there the RDZV_JOIN=... that this node prints on a terminal"
	command := meet.DifferentCommand{Addr: addr}
	down := errors.New("network is down")
	for _, test := range []struct {
		notice  meet.Notice
		showKey bool
		want    Event
		json    string
	}{
		{withKey, false, alone, `{"waited_seconds":3,"store":"10.0.0.6"}`},
		{withKey, true, withKey, `{"waited_seconds":3,"store":"10.0.0.6"}`},
		{
			insecure, false, insecure,
			`{"waited_seconds":3}`,
		},
		{
			other, false, advised,
			`{"host":"node2","addr":"10.0.0.6","hosting":false,"hint":"copy the token of one node ` +
				`to the other (here it is /home/u/token), and start rdzv there again; or put before the command ` +
				`there the RDZV_JOIN=... that this node prints on a terminal"}`,
		},
		{command, false, command, `{"addr":"10.0.0.6"}`},
		{meet.RanksMissing{Ranks: 4}, false, RanksMissing{Ranks: 4}, `{"ranks":4}`},
		{
			meet.NoMulticast{Err: down, Text: "network is down"}, false,
			NoMulticast{Err: down, Text: "network is down"},
			`{"text":"network is down"}`,
		},
		{
			meet.Disappeared{Host: "node2", Addr: addr, Ago: 3200 * time.Millisecond}, false,
			Diagnostic{
				Severity: Warning, Text: "node2 (10.0.0.6) was searching and disappeared 3s ago",
			},
			`{"severity":"warning","text":"node2 (10.0.0.6) was searching and disappeared 3s ago"}`,
		},
		{
			meet.KeeperLost{Err: down}, false,
			Diagnostic{Severity: Warning, Err: down, Text: "network is down"},
			`{"severity":"warning","text":"network is down"}`,
		},
	} {
		got := noticed(test.notice, test.showKey, token.Place{Path: "/home/u/token"})
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%+v: event %+v, want %+v", test.notice, got, test.want)
		}
		b, err := MarshalEvent(time.Now(), got)
		if err != nil || !strings.HasSuffix(string(b), `"event":`+test.json+"}") {
			t.Errorf("%+v: JSON form %s, %v; want the event %s", test.notice, b, err, test.json)
		}
	}
}

// The first report of a search comes at once where the user has named the store, and late on a
// platform, whose nodes get their names when they start.
func TestFirstSearchReport(t *testing.T) {
	lws := []string{"LWS_WORKER_INDEX=1", "LWS_GROUP_SIZE=2", "LWS_LEADER_ADDRESS=pod0"}
	for name, test := range map[string]struct {
		config Config
		want   time.Duration
	}{
		"multicast":           {Config{Nodes: 2}, 5 * time.Second},
		"--store":             {Config{Nodes: 2, Store: "node1"}, time.Second},
		"platform":            {Config{Environ: lws}, 10 * time.Second},
		"platform, a display": {Config{Environ: lws, ReportEvery: time.Second}, 10 * time.Second},
		"platform, --launcher none": {
			Config{Environ: lws, Launcher: "none", Nodes: 2, Store: "pod0"}, 10 * time.Second,
		},
	} {
		test.config.Program = []string{"true"}
		l, err := Plan(test.config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := nextSearchReport(l)(0); got != test.want {
			t.Errorf("%s: first report after %v, want %v", name, got, test.want)
		}
	}
}
