package agent

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdzv/rdzv/meet"
)

// The line by which others join holds the job's key: it is in no event unless the Config allows it,
// and never in its JSON form.
func TestNoticed(t *testing.T) {
	addr := netip.MustParseAddr("10.0.0.6")
	alone := meet.Alone{After: 3 * time.Second, Store: addr, JoinLine: "RDZV_JOIN=10.0.0.6:1/KEY", Secret: true}
	open := meet.Alone{After: 3 * time.Second, JoinLine: "RDZV_JOIN=10.0.0.6:1"}
	down := errors.New("network is down")
	for _, test := range []struct {
		notice  meet.Notice
		showKey bool
		want    Event
		json    string
	}{
		{alone, false, Alone{Waited: 3 * time.Second, Store: "10.0.0.6"}, `{"waited_seconds":3,"store":"10.0.0.6"}`},
		{alone, true, Alone{Waited: 3 * time.Second, Store: "10.0.0.6", JoinLine: alone.JoinLine}, `{"waited_seconds":3,"store":"10.0.0.6"}`},
		{open, false, Alone{Waited: 3 * time.Second, JoinLine: open.JoinLine}, `{"waited_seconds":3}`},
		{
			meet.DifferentToken{Host: "node2", Addr: addr}, false,
			DifferentToken{meet.DifferentToken{Host: "node2", Addr: addr}}, `{"host":"node2","addr":"10.0.0.6"}`,
		},
		{
			meet.DifferentCommand{Addr: addr}, false,
			DifferentCommand{meet.DifferentCommand{Addr: addr}}, `{"addr":"10.0.0.6"}`,
		},
		{meet.RanksMissing{Ranks: 4}, false, RanksMissing{meet.RanksMissing{Ranks: 4}}, `{"ranks":4}`},
		{meet.NoMulticast{Err: down}, false, NoMulticast{Err: down, Text: "network is down"}, `{"text":"network is down"}`},
	} {
		got := noticed(test.notice, test.showKey)
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%+v: %+v, want %+v", test.notice, got, test.want)
		}
		if b, err := MarshalEvent(time.Now(), got); err != nil || !strings.HasSuffix(string(b), `"event":`+test.json+"}") {
			t.Errorf("%s, %v; want %s", b, err, test.json)
		}
	}
}
