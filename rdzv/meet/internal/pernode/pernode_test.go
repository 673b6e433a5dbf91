package pernode

import (
	"context"
	"os"
	"testing"
)

// The first agent whose call succeeds provides the result of all. After a failed call, the next
// agent calls, although the first has not left.
func TestOnce(t *testing.T) {
	dir := t.TempDir()
	calls := 0
	for i, answer := range []string{"", "text", "another"} {
		var leave []func()
		defer func() {
			for _, f := range leave {
				f()
			}
		}()
		text, err := Once(t.Context(), dir, "name", func(f func()) { leave = append(leave, f) }, func() ([]byte, error) {
			calls++
			if answer == "" {
				return nil, os.ErrInvalid
			}
			return []byte(answer), nil
		})
		if i == 0 {
			if err == nil {
				t.Error("the error of the first agent is not returned")
			}
		} else if err != nil || string(text) != "text" {
			t.Errorf("agent %d: %q, %v", i, text, err)
		}
	}
	if calls != 2 {
		t.Errorf("called %d times, want 2", calls)
	}
}

// Of many agents at the same time, one calls the function.
func TestOnceTogether(t *testing.T) {
	dir := t.TempDir()
	called := make(chan bool, 100)
	texts := make(chan string, cap(called))
	for range cap(called) {
		var leave []func()
		defer func() {
			for _, f := range leave {
				f()
			}
		}()
		go func() {
			atEnd := func(f func()) { leave = append(leave, f) }
			text, _ := Once(context.Background(), dir, "name", atEnd, func() ([]byte, error) {
				called <- true
				return []byte("text"), nil
			})
			texts <- string(text)
		}()
	}
	for range cap(called) {
		if text := <-texts; text != "text" {
			t.Errorf("read %q", text)
		}
	}
	if len(called) != 1 {
		t.Errorf("called %d times, want once", len(called))
	}
}
