package meet

import (
	"context"
	"net/netip"
	"time"
)

// How hard a search tries: burst addresses at once, the next burst when those have not answered for
// burstEvery, maxOpen in all. An address that said no is tried again after firstWait, then later
// and later up to lastWait. A later port of the sequence is for a store that found those before it
// taken: it is tried again every laterWait.
const (
	burst      = 8
	burstEvery = 100 * time.Millisecond
	maxOpen    = 64
	firstWait  = 20 * time.Millisecond
	lastWait   = 200 * time.Millisecond
	laterWait  = time.Second
	preferFor  = 50 * time.Millisecond // for another address of a store that is found: all agents should come in by the same
	strangeFor = time.Second           // before asking again somebody who has another key
)

// An offer is an address at which the store may be.
type offer struct {
	addr   netip.AddrPort
	name   string // where it comes from, for messages; may be empty
	likely int    // the smallest is tried first
	later  bool   // not the first of the sequence of ports
}

// A source offers addresses until ctx ends, or until it has no more to say.
type source func(ctx context.Context, give func(offer))

// tries are the addresses that a search knows of.
type tries map[netip.AddrPort]*try

type try struct {
	offer
	open    bool
	started time.Time // of the last attempt
	next    time.Time // when to try again
	wait    time.Duration
	answer  error
}

// maxTries bounds what a search remembers: sources may offer what strangers told them.
const maxTries = 4096

func (all tries) take(o offer) {
	if t := all[o.addr]; t != nil {
		t.likely, t.later = min(t.likely, o.likely), t.later && o.later
		return
	}
	if o.addr.IsValid() && o.addr.Port() != 0 && (len(all) < maxTries || all.drop(o.likely)) {
		all[o.addr] = &try{offer: o}
	}
}

// drop makes room for an offer that is as likely as likely, and reports whether there was a worse
// one.
func (all tries) drop(likely int) bool {
	var worst *try
	for _, t := range all {
		if !t.open && t.likely > likely && (worst == nil || t.likely > worst.likely) {
			worst = t
		}
	}
	if worst != nil {
		delete(all, worst.addr)
	}
	return worst != nil
}

// longer is how long to wait before the next attempt.
func (t *try) longer() time.Duration {
	if t.later {
		return laterWait
	}
	return min(max(t.wait*3/2, firstWait), lastWait)
}
