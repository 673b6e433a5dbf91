package runner

import (
	"errors"
	"time"

	"rdzv/wrap"
)

// askWait is how long a task may take to answer.
const askWait = 2 * time.Second

// ErrNoAnswer is the error of ReadFile if the task does not answer in 2 s.
var ErrNoAnswer = errors.New("the runner does not answer")

// ReadFile reads a file below /proc as the task sees it: on some systems what is there about a
// worker can be read only by its ancestors.
func (t *Task) ReadFile(name string) ([]byte, error) {
	a, err := t.ask(readFile, name)
	if err != nil {
		return nil, err
	}
	return a.Text, a.Err.error()
}

// Remaining is wrap.Remaining in the task. It returns nothing if the task does not answer.
func (t *Task) Remaining() []wrap.Process {
	a, _ := t.ask(remaining, "")
	return a.Processes
}

// ask sends a question and waits for the answer.
func (t *Task) ask(k kind, name string) (a answer, err error) {
	to := make(chan answer, 1)
	t.mu.Lock()
	t.lastID++
	id := t.lastID
	t.pending[id] = to
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.pending, id)
	}()
	if err := t.order(k, question{id, text(name)}); err != nil {
		return a, err
	}
	late := time.NewTimer(askWait)
	defer late.Stop()
	select {
	case a = <-to:
		return a, nil
	case <-t.lost:
		return a, ErrLost
	case <-late.C:
		return a, ErrNoAnswer
	}
}
