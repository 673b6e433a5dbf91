package agent

import "sync"

// reporter passes events to the Config's function, one at a time.
type reporter struct {
	mu     sync.Mutex
	events func(Event)
}

func newReporter(events func(Event)) *reporter { return &reporter{events: events} }

func (r *reporter) send(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events(e)
}

// verbose reports an error that changes nothing and that few want to know of.
func (r *reporter) verbose(err error) {
	r.send(Diagnostic{Severity: Verbose, Err: err, Text: err.Error()})
}

func (r *reporter) warn(err error) {
	r.send(Diagnostic{Severity: Warning, Err: err, Text: err.Error()})
}
