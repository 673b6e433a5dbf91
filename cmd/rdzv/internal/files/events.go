package files

import (
	"fmt"
	"os"
	"time"

	"rdzv/rdzv/agent"
)

// Events is the file to which the agent that hosts the store appends its events, as JSON lines.
// Nothing that happens to it delays or ends the job: it is opened and written by a goroutine of its
// own, which Close abandons if the file system does not respond. nil is no file.
type Events struct {
	path  string
	limit *Limit
	warn  func(error)

	early [][]byte // lines from before it is known which agent hosts the store
	leads bool     // as far as is known, this one
	other bool     // another agent hosts the store

	lines   chan []byte   // to the goroutine
	done    chan struct{} // closed when it has ended
	dropped int           // lines for which there was no place in lines
}

const maxQueue = 4096 // lines

// NewEvents returns the file at path, nil without a path. The file is created when the agent has
// found that it hosts the store. warn is told, once, why events could not be written.
func NewEvents(path string, limit *Limit, warn func(error)) *Events {
	if path == "" {
		return nil
	}
	f := &Events{
		path: path, limit: limit, warn: warn,
		lines: make(chan []byte, maxQueue), done: make(chan struct{}),
	}
	go f.write()
	return f
}

// Event adds an event. There must be one call at a time, also of Close.
func (f *Events) Event(e agent.Event) {
	if f == nil || f.other {
		return
	}
	line, err := agent.MarshalEvent(time.Now(), e)
	if err != nil {
		return // no event has a value that cannot be encoded
	}
	f.early = append(f.early, append(line, '\n'))
	switch e := e.(type) {
	case agent.StoreFound: // another one may follow
		f.leads = e.Leads
		return
	case agent.WorldAgreed, agent.JobEnded:
		f.other = !f.leads
	}
	if !f.leads {
		return
	}
	for _, line := range f.early {
		select {
		case f.lines <- line:
		default:
			f.dropped++
		}
	}
	f.early = nil
}

// write creates the file when the first line comes, and gives it up if it cannot be written.
func (f *Events) write() {
	defer close(f.done)
	var file *os.File
	var err error
	for line := range f.lines {
		if err != nil {
			continue
		}
		if file == nil {
			file, err = openToAppend(f.path)
		}
		if err == nil {
			_, err = file.Write(line)
		}
		if err != nil {
			f.fail(err)
		}
	}
	file.Close()
}

// fail reports why events are not written.
func (f *Events) fail(err error) {
	f.warn(fmt.Errorf("cannot write events to %q: %w", f.path, Cause(err)))
}

// Close waits until all events are written, as long as the limit permits.
func (f *Events) Close() {
	if f == nil {
		return
	}
	close(f.lines)
	err := f.limit.Do(Timeout, func() error { <-f.done; return nil })
	if err == nil && f.dropped > 0 {
		err = fmt.Errorf("%d are missing, because it was too slow", f.dropped)
	}
	if err != nil {
		f.fail(err)
	}
}
