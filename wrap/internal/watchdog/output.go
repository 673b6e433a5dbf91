package watchdog

import (
	"sync"
	"syscall"

	"rdzv/wrap/internal/tee"
)

// outputs copy what workers write (Output.Piped). This process does it, and not the agent, so that
// nothing is lost if the agent is killed.
type outputs struct {
	tees    map[int][]*tee.Tee  // by worker
	screens map[int]*tee.Screen // by index among the descriptors that the agent has sent
}

// open starts the Tees of worker i. It returns what the worker gets as stdout and stderr, one
// descriptor if that is the same, to be closed when the worker has been started.
func (o *outputs) open(i int, s Worker, files []int) (writeEnds []int, err error) {
	if o.tees == nil {
		o.tees, o.screens = map[int][]*tee.Tee{}, map[int]*tee.Screen{}
	}
	shown := s.Files[1:]
	if s.Output.Joined {
		shown = s.Files[1:2]
	}
	for n, at := range shown {
		read, write, err := tee.NewPipe()
		if err != nil {
			return writeEnds, err
		}
		writeEnds = append(writeEnds, write)
		p := &tee.Tee{
			From: read, Log: Null, Tag: s.Output.Tag, Hold: s.Output.Hold, Vain: n == 0,
			Drained: func() { tell(Record{Kind: Drained, Index: i, A: int64(n)}) },
			Hidden: func(reason syscall.Errno, bytes int64) {
				tell(Record{Kind: OutputLost, Index: i, A: int64(reason), B: bytes, C: int64(n)})
			},
		}
		if p.Show, err = o.screen(at, s.Output.Relayed, files); err != nil {
			return writeEnds, err
		}
		if n == len(shown)-1 {
			if err := keep(p, i, s.Output, files); err != nil {
				return writeEnds, err
			}
		}
		p.Start()
		o.tees[i] = append(o.tees[i], p)
	}
	return writeEnds, nil
}

// screen is where the descriptor with index at leads, nil if there is none.
func (o *outputs) screen(at int, relayed bool, files []int) (*tee.Screen, error) {
	if at == Null || o.screens[at] != nil {
		return o.screens[at], nil
	}
	fd := duplicate(files[at])
	if fd == Null {
		return nil, syscall.EMFILE
	}
	o.screens[at] = tee.NewScreen(fd, relayed)
	return o.screens[at], nil
}

// keep lets the pump of stderr of worker i, or of both streams, keep what it copies.
func keep(p *tee.Tee, i int, o Output, files []int) (err error) {
	p.Lost = func(reason syscall.Errno, bytes int64) {
		tell(Record{Kind: LogLost, Index: i, A: int64(reason), B: bytes})
	}
	if o.Log != Null {
		if p.Log = duplicate(files[o.Log]); p.Log == Null {
			return syscall.EMFILE
		}
	}
	p.Tail, err = tee.MapTail(files[o.Tail])
	return err
}

func (o *outputs) workerEnded(i int) {
	for _, p := range o.tees[i] {
		p.WorkerEnded()
	}
}

// close waits until everything has been copied, when nothing of the tree is left.
func (o *outputs) close() {
	var wg sync.WaitGroup
	for _, tees := range o.tees {
		for _, p := range tees {
			wg.Go(p.Close)
		}
	}
	wg.Wait()
}
