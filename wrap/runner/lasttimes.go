package runner

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"rdzv/wrap"
	"rdzv/wrap/internal/shared"
)

// lastTimes is memory in which a runner notes when each worker has last written something, so that
// the agent need not ask.
type lastTimes struct {
	memory []byte
	times  []int64
}

const timeSize = int(unsafe.Sizeof(int64(0)))

// newLastTimes returns one for n workers, and its file.
func newLastTimes(n int) (*lastTimes, *os.File, error) {
	file, err := shared.New("last output", n*timeSize)
	if err != nil {
		return nil, nil, err
	}
	l, err := openLastTimes(file, n)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return l, file, nil
}

func openLastTimes(file *os.File, n int) (*lastTimes, error) {
	if n == 0 {
		return nil, errors.New("no workers")
	}
	memory, err := shared.Map(file, n*timeSize, syscall.PROT_READ|syscall.PROT_WRITE)
	if err != nil {
		return nil, err
	}
	return &lastTimes{memory, unsafe.Slice((*int64)(unsafe.Pointer(&memory[0])), n)}, nil
}

// follow makes the workers' LastOutput tell the times until close.
func (l *lastTimes) follow(workers []wrap.Worker) {
	for i := range workers {
		if w := &workers[i]; w.LastOutput != nil {
			w.LastOutput.Follow(&l.times[i])
		}
	}
}

// close keeps the times for the workers and releases the memory.
func (l *lastTimes) close(workers []wrap.Worker) {
	for i := range workers {
		workers[i].LastOutput.Keep()
	}
	shared.Unmap(l.memory)
}
