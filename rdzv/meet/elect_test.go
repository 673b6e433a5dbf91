package meet

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"rdzv/rdzv/meet/internal/beacon"
	"rdzv/rdzv/meet/internal/gate"
)

// When the agent of node3 hosts, in a job of five agents, if others wait for it, and it waits for
// others, from the beginning.
func TestElect(t *testing.T) {
	const never = time.Duration(-1)
	for name, c := range map[string]struct {
		clients []string // hosts; "" is an agent with RDZV_JOIN
		waits   []string // hosts
		hosting string   // the one of them that has sent a beacon that it hosts
		want    time.Duration
	}{
		"all others":                     {[]string{"node4", "node5", "node6", "node7"}, nil, "", 0},
		"all others, one by RDZV_JOIN":   {[]string{"node4", "node5", "node6", ""}, nil, "", 0},
		"one of them is before it":       {[]string{"node2", "node4", "node5", "node6"}, nil, "", 2 * restTimeout},
		"more than half":                 {[]string{"node4", "node5"}, nil, "", restTimeout},
		"fewer":                          {[]string{"node4"}, nil, "", never},
		"one connection each":            {[]string{"node4", "node4", "node4", "node4"}, nil, "", never},
		"RDZV_JOIN":                      {[]string{""}, nil, "", restTimeout},
		"it waits for one before it":     {[]string{"node4", "node5"}, []string{"node2"}, "", 2 * restTimeout},
		"it waits for one after it":      {[]string{"node4", "node5", "node6", "node7"}, []string{"node4"}, "", 0},
		"it waits for one that hosts":    {[]string{"node4", "node5"}, []string{"node4"}, "node4", never},
		"it waits for another than that": {[]string{"node4", "node5"}, []string{"node4"}, "node5", restTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ids := newSchedule(0), map[string]gate.Instance{}
				for k := range 7 {
					ids[simulatedHost(k)] = s.newID(-1, k)
				}
				p := simulatedPeers("node3", ids["node3"], simulatedAddr(2))
				var clients []gate.Client
				for _, host := range c.clients {
					client := gate.Client{Host: host, Waiting: true}
					if host != "" {
						client.ID = ids[host].String()
					}
					clients = append(clients, client)
				}
				for i, host := range c.waits {
					if err := p.waitFor(ids[host], host, simulatedAddr(i)); err != nil {
						t.Fatal(err)
					}
				}
				if c.hosting != "" {
					p.receive(beacon.Packet{Data: beacon.Beacon{
						Hosting: true, Public: simulatedPublic, ID: ids[c.hosting].String(),
						Host: c.hosting, Addrs: []netip.AddrPort{simulatedAddr(0)},
					}.Encode([]byte(simulatedKey))})
				}
				began, after := time.Now(), never
				for ; after == never && time.Since(began) < time.Minute; time.Sleep(time.Second / 2) {
					if p.elect(clients, 5) {
						after = time.Since(began)
					}
				}
				if after != c.want {
					t.Errorf("it hosts after %v, want %v", after, c.want)
				}
				elected := p.waitFor(ids["node1"], "node1", simulatedAddr(9)) == errElected
				if elected != (after != never) {
					t.Errorf("it is elected and waits for no other: %t", elected)
				}
			})
		})
	}
}

// An agent that is to host after a time lets a better one that it meets meanwhile decide before.
func TestElectAfterBetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedule(0)
		p := simulatedPeers("node3", s.newID(-1, 2), simulatedAddr(2))
		clients := []gate.Client{{ID: s.newID(-1, 3).String(), Host: "node4", Waiting: true}}
		for k, host := range []string{"node2", "node1"} {
			if p.elect(clients, 3) {
				t.Fatal("it hosts at once")
			}
			time.Sleep(restTimeout - time.Millisecond)
			p.waitFor(s.newID(-1, 1-k), host, simulatedAddr(k))
		}
		for _, met := range []time.Duration{0, 2*restTimeout - time.Millisecond} {
			time.Sleep(met)
			if p.elect(clients, 3) {
				t.Errorf("it hosts %v after it has met node1", met)
			}
		}
		time.Sleep(time.Millisecond)
		if !p.elect(clients, 3) {
			t.Errorf("it does not host %v after it has met node1", 2*restTimeout)
		}
	})
}
