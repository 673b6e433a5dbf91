package runner

import (
	"errors"
	"os"
	"time"

	"rdzv/wrap"
)

// spec is a wrap.Tree for a runner. With it come files: the memory of lastOutputs, the lease, those
// of a wrap.HeldSocket, and the logs of workers in their order.
type spec struct {
	Workers                        []workerSpec
	Grace, LeaseGrace, FrozenLimit time.Duration
	Linger, JobControl             bool
	Signalled                      wrap.Signalled
	Lease                          bool // there is a file
	Held                           bool // there are files
}

type workerSpec struct {
	Path, Dir text
	Args, Env texts
	Streams   [3]bool // those of the task; false is /dev/null
	Capture   bool
	Output    *outputSpec `json:",omitempty"`
	StartAt   instant     `json:",omitempty"`
	Bind      wrap.Binding
}

type outputSpec struct {
	Log           bool // there is a file
	Tag           text
	Hold, Relayed bool
}

// specOf is the spec of a tree and its files, of which the first one is given.
func specOf(t *wrap.Tree, last *os.File) (s spec, files []*os.File, err error) {
	files = []*os.File{last}
	s = spec{
		Grace: t.Grace, LeaseGrace: t.LeaseGrace, FrozenLimit: t.FrozenLimit, Linger: t.Linger,
		JobControl: t.JobControl, Signalled: t.Signalled, Lease: t.Lease != nil,
	}
	if t.Lease != nil {
		file, err := t.Lease.Share()
		if err != nil {
			return s, nil, err
		}
		files = append(files, file)
	}
	if s.Held = t.Held != nil; s.Held {
		held := t.Held.Files()
		files = append(files, held[:]...)
	}
	for i := range t.Workers {
		w := &t.Workers[i]
		ws := workerSpec{
			Path: text(w.Path), Dir: text(w.Dir), Args: w.Args, Env: w.Env, Capture: w.Capture,
			Streams: [3]bool{w.Stdin != nil, w.Stdout != nil, w.Stderr != nil},
			StartAt: instantOf(w.StartAt), Bind: w.Bind,
		}
		if o := w.Output; o != nil {
			ws.Output = &outputSpec{o.Log != nil, text(o.Tag), o.Hold, o.Relayed}
			if o.Log != nil {
				files = append(files, o.Log)
			}
		}
		s.Workers = append(s.Workers, ws)
	}
	return s, files, nil
}

// tree is the tree of a spec in the runner, whose streams are given. It takes its files from the
// list.
func (s *spec) tree(streams [3]*os.File, files *[]*os.File) (t wrap.Tree, err error) {
	t = wrap.Tree{
		Grace: s.Grace, LeaseGrace: s.LeaseGrace, FrozenLimit: s.FrozenLimit, Linger: s.Linger,
		JobControl: s.JobControl, Signalled: s.Signalled,
	}
	file, err := first(files)
	if err != nil {
		return t, err
	}
	// It is never unmapped: a stream may still be copied when Run has returned.
	last, err := openLastOutputs(file, len(s.Workers))
	if err != nil {
		return t, err
	}
	if s.Lease {
		if file, err = first(files); err == nil {
			t.Lease, err = wrap.OpenLease(file)
		}
		if err != nil {
			return t, err
		}
	}
	if s.Held {
		var held [3]*os.File
		for i := range held {
			if held[i], err = first(files); err != nil {
				return t, err
			}
		}
		t.Held = wrap.ReceiveHeldSocket(held)
	}
	for i := range s.Workers {
		w, err := s.Workers[i].worker(streams, files)
		if err != nil {
			return t, err
		}
		w.LastOutput = wrap.LastOutputIn(&last.each[i])
		t.Workers = append(t.Workers, w)
	}
	return t, nil
}

func (s *workerSpec) worker(streams [3]*os.File, files *[]*os.File) (w wrap.Worker, err error) {
	w = wrap.Worker{
		Path: string(s.Path), Dir: string(s.Dir), Args: s.Args, Env: s.Env, Capture: s.Capture,
		StartAt: s.StartAt.time(), Bind: s.Bind,
	}
	for stream, to := range []**os.File{&w.Stdin, &w.Stdout, &w.Stderr} {
		if s.Streams[stream] {
			*to = streams[stream]
		}
	}
	if o := s.Output; o != nil {
		w.Output = &wrap.Output{Tag: string(o.Tag), Hold: o.Hold, Relayed: o.Relayed}
		if o.Log {
			w.Output.Log, err = first(files)
		}
	}
	return w, err
}

// first takes the first file of a list.
func first(files *[]*os.File) (*os.File, error) {
	if len(*files) == 0 {
		return nil, errors.New("a file is missing")
	}
	f := (*files)[0]
	*files = (*files)[1:]
	return f, nil
}
