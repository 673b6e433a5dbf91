// Package eventfile writes the events of the agent that hosts the store to a file, as JSON lines.
package eventfile

import (
	"errors"
	"fmt"
	"time"

	"rdzv/cmd/rdzv/internal/outfile"
	"rdzv/rdzv/agent"
)

// File is a file of events. Nothing that happens to it delays or ends the job: it is opened and
// written by a goroutine of its own, which Close abandons if the file system does not respond. nil
// is no file.
type File struct {
	path string
	warn func(error)

	early [][]byte // lines from before it is known which agent hosts the store
	leads bool     // as far as is known, this one
	other bool     // another agent hosts the store

	lines   chan []byte   // to the goroutine; nil before it is started
	done    chan struct{} // closed when it has ended
	dropped int           // lines for which there was no place in lines
}

const (
	maxQueue = 4096
	// closeTimeout is how long Close waits for a file system that does not respond.
	closeTimeout = time.Second
)

// New returns the file at path, nil without a path. The file is created when the agent has found
// that it hosts the store. warn is told, once, why events could not be written.
func New(path string, warn func(error)) *File {
	if path == "" {
		return nil
	}
	return &File{path: path, warn: warn}
}

// Event adds an event. There must be one call at a time, also of Close.
func (f *File) Event(e agent.Event) {
	if f == nil || f.other {
		return
	}
	line, err := agent.MarshalEvent(time.Now(), e)
	if err != nil {
		return // no event has a value that cannot be encoded
	}
	line = append(line, '\n')
	if f.lines != nil {
		f.put(line)
		return
	}
	f.early = append(f.early, line)
	switch e := e.(type) {
	case agent.StoreFound: // another one may follow
		f.leads = e.Leads
	case agent.WorldAgreed, agent.JobEnded:
		f.other = !f.leads
	}
	if _, found := e.(agent.StoreFound); f.leads && !found {
		f.open()
	}
}

// open starts to write.
func (f *File) open() {
	f.lines, f.done = make(chan []byte, maxQueue), make(chan struct{})
	go f.write()
	for _, line := range f.early {
		f.put(line)
	}
	f.early = nil
}

func (f *File) put(line []byte) {
	select {
	case f.lines <- line:
	default:
		f.dropped++
	}
}

func (f *File) write() {
	defer close(f.done)
	file, err := outfile.Append(f.path)
	if err != nil {
		f.fail(err)
	} else {
		defer file.Close()
	}
	for line := range f.lines {
		if err != nil {
			continue // a file that cannot be written is given up
		}
		if _, err = file.Write(line); err != nil {
			f.fail(err)
		}
	}
}

// fail reports why events are not written.
func (f *File) fail(err error) {
	f.warn(fmt.Errorf("cannot write events to %q: %w", f.path, outfile.Cause(err)))
}

// Close waits until all events are written, for at most 1 s.
func (f *File) Close() {
	if f == nil || f.lines == nil {
		return
	}
	close(f.lines)
	late := time.NewTimer(closeTimeout)
	defer late.Stop()
	select {
	case <-f.done:
		if f.dropped > 0 {
			f.fail(fmt.Errorf("%d are missing, because it was too slow", f.dropped))
		}
	case <-late.C:
		f.fail(errors.New("the file system or the reader does not respond"))
	}
}
