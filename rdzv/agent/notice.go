package agent

import (
	"rdzv/rdzv/meet"
)

// noticed is the event of what package meet reports while this agent looks for the others. The line
// by which others join is left out unless showKey allows it or it holds no key.
func noticed(n meet.Notice, showKey bool) Event {
	switch n := n.(type) {
	case meet.Alone:
		e := Alone{Waited: n.After, JoinLine: n.JoinLine}
		if n.Store.IsValid() {
			e.Store = n.Store.String()
		}
		if n.Secret && !showKey {
			e.JoinLine = ""
		}
		return e
	case meet.DifferentToken:
		return DifferentToken{n}
	case meet.DifferentCommand:
		return DifferentCommand{n}
	case meet.RanksMissing:
		return RanksMissing{n}
	case meet.NoMulticast:
		return NoMulticast{Err: n.Err, Text: n.Err.Error()}
	}
	return nil
}
