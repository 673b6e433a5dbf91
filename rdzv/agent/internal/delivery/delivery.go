// Package delivery knows which signals the workers of a task have received, and passes others to
// them.
package delivery

import (
	"slices"

	"rdzv/wrap"
)

// maxForwarded is how many signals are queued while the workers are being started.
const maxForwarded = 64

// Delivery is that of one task of an agent.
type Delivery struct {
	Forward chan wrap.Event // for the workers
	First   *wrap.Event     // the first signal to the task that ends the job; nil if there was none
}

// New is that of a task which has received nothing.
func New() *Delivery { return &Delivery{Forward: make(chan wrap.Event, maxForwarded)} }

// Pass passes a signal to the workers that have not received it.
func (d *Delivery) Pass(e wrap.Event) {
	select {
	case d.Forward <- e:
	default: // so many wait that one more of a kind is the same to the workers
	}
}

// Forget drops the signals that wait: they were for the workers of an attempt before.
func (d *Delivery) Forget() {
	for len(d.Forward) > 0 {
		<-d.Forward
	}
}

// AnyWaits tells whether a task has not received a signal that ends the job.
func AnyWaits(tasks []*Delivery) bool {
	return slices.ContainsFunc(tasks, func(d *Delivery) bool { return d.First == nil })
}
