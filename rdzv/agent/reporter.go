package agent

import (
	"fmt"
	"sync"

	"rdzv/rdzv/meet"
)

// reporter passes events to the Config's function, one at a time.
type reporter struct {
	mu     sync.Mutex
	events func(Event)
}

func (r *reporter) send(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events(e)
}

// diagnose reports an error that does not change how the job proceeds.
func (r *reporter) diagnose(s Severity, err error) {
	r.send(Diagnostic{Severity: s, Err: err, Text: err.Error()})
}

// slowFiles returns what reports that the file system of what does not respond.
func (r *reporter) slowFiles(what string) func() {
	return func() { r.diagnose(Warning, fmt.Errorf("the file system of %s does not respond", what)) }
}

// noticed is the event of what package meet reports while this agent looks for the others. The line
// by which others join is left out unless showKey allows it or it holds no key.
func noticed(n meet.Notice, showKey bool, tokenPlace string) Event {
	switch n := n.(type) {
	case meet.Searching:
		return Searching{n}
	case meet.Alone:
		e := Alone{Waited: n.After, NoBeacon: n.NoBeacon, JoinLine: n.JoinLine}
		if n.Store.IsValid() {
			e.Store = n.Store.String()
		}
		if n.Secret && !showKey {
			e.JoinLine = ""
		}
		return e
	case meet.DifferentToken:
		return DifferentToken{n, remedyOf(n, tokenPlace)}
	case meet.DifferentCommand:
		return DifferentCommand{n}
	case meet.RanksMissing:
		return RanksMissing{n}
	case meet.NoMulticast:
		return NoMulticast{Err: n.Err, Text: n.Err.Error()}
	case meet.Disappeared:
		return Diagnostic{Severity: Warning, Text: n.String()}
	case meet.KeeperLost:
		return Diagnostic{Severity: Warning, Err: n.Err, Text: n.Err.Error()}
	}
	return nil
}
