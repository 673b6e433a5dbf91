package runner

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"rdzv/wrap"
	"rdzv/wrap/internal/shared"
)

// lastOutputs is memory in which a runner keeps the end of what each worker writes, so that the
// agent need not ask.
type lastOutputs struct {
	memory []byte
	each   []wrap.OutputMemory
}

const outputSize = int(unsafe.Sizeof(wrap.OutputMemory{}))

// newLastOutputs returns one for n workers, and its file.
func newLastOutputs(n int) (*lastOutputs, *os.File, error) {
	file, err := shared.New("last output", n*outputSize)
	if err != nil {
		return nil, nil, err
	}
	l, err := openLastOutputs(file, n)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return l, file, nil
}

func openLastOutputs(file *os.File, n int) (*lastOutputs, error) {
	if n == 0 {
		return nil, errors.New("no workers")
	}
	memory, err := shared.Map(file, n*outputSize, syscall.PROT_READ|syscall.PROT_WRITE)
	if err != nil {
		return nil, err
	}
	return &lastOutputs{memory, unsafe.Slice((*wrap.OutputMemory)(unsafe.Pointer(&memory[0])), n)}, nil
}

// follow makes the workers' LastOutput tell it until close.
func (l *lastOutputs) follow(workers []wrap.Worker) {
	for i := range workers {
		if w := &workers[i]; w.LastOutput != nil {
			w.LastOutput.Follow(&l.each[i])
		}
	}
}

// close keeps the times for the workers and releases the memory.
func (l *lastOutputs) close(workers []wrap.Worker) {
	for i := range workers {
		workers[i].LastOutput.Keep()
	}
	shared.Unmap(l.memory)
}
