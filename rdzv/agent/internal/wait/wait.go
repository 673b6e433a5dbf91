// Package wait waits for an event as long as somebody wants to know of it.
package wait

import "context"

// For waits for an event; it returns false if ctx ends before.
func For[T any](ctx context.Context, event <-chan T) bool {
	select {
	case <-event:
		return true
	case <-ctx.Done():
		return false
	}
}
