// Package holder is the process between an agent and its workers. It starts them, waits for them,
// and adopts and waits for the descendants that they orphan. When the agent has ended, or is
// stopped for too long while any of them run, the holder kills all of that. It decides nothing
// else: the agent orders what is to be started and signalled.
//
// The holder is a fork of the agent without exec, so that it costs a fraction of a millisecond and
// a few pages of memory. A fork of a Go program has one thread, no scheduler; the files child*.go
// say what may run there.
//
// It is in a process group of its own, which no launcher signals, blocks all signals, and its name
// and arguments do not contain that of the agent: "pkill -9 rdzv" kills the agents alone.
package holder

import (
	"errors"
	"syscall"
	"time"
	"unsafe"
)

// Name is the name of the holder as ps shows it.
const Name = "tree-holder"

// KillWait is how long processes may take to die of SIGKILL before they are reported as Survivors:
// they may belong to another user or hang in the kernel.
const KillWait = time.Duration(killWait)

// WorkerSpec describes a worker that a holder can start.
type WorkerSpec struct {
	Path  string   // executable; a relative path is resolved in Dir
	Dir   string   // working directory; "" is the agent's
	Args  []string // argv, including argv[0]
	Env   []string // "NAME=value"
	Files [3]int   // stdin, stdout, stderr: descriptors of the agent, or Null
	CPUs  []int    // its affinity; the agent's if empty
	Node  int      // NUMA node from which it prefers memory, or AnyNode

	// Pipe and Log are the read end of a pipe of its output, and where that is copied; Null if there
	// is no log. What the agent has read is in Chunk meanwhile.
	Pipe, Log int
	Chunk     *Chunk
}

const (
	// Null in WorkerSpec.Files is /dev/null.
	Null = -1
	// AnyNode in WorkerSpec.Node leaves the memory policy as it is.
	AnyNode = -1
)

// Process is a holder.
type Process struct {
	PID    int
	Socket int // a SOCK_SEQPACKET to it, with a Record in each packet
	Shared *Shared
	shared []byte
}

// Config describes the workers that a holder can start, and when it kills them by itself. A Record
// names a worker by its index in Workers.
type Config struct {
	Workers []WorkerSpec
	// SameGroup makes the workers members of the process group of the agent; otherwise each is in one
	// of its own.
	SameGroup bool
	// Owner is a stream socket to the process that owns the tree: when that has closed its end the
	// holder kills everything. If it is stopped for Shared.FrozenFor it is killed. 0 is none.
	Owner int
	// Held is a connection that the holder keeps open; nil is none.
	Held *Held
	// Until is used instead of Shared.LeaseUntil if it is set: it is in other memory that processes
	// share.
	Until *int64
}

// Held is a connection of the agent that holders keep open, so that its other end reads end of file
// when no process of any tree is left. If a tree has no processes any more and its agent has died,
// the holder closes its Own, and if nobody else has that sends the end of the stream (shutdown(2)):
// without that the kernel would reset a connection with data that nobody has read.
type Held struct {
	Socket      int
	Others, Own int // the read end and the write end of a pipe
}

// HeldWait is how long it waits until nobody else has Own.
const HeldWait = time.Duration(heldWait)

// New starts a holder, which has no workers yet.
func New(c Config) (p *Process, err error) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX,
		syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errors.New("cannot create a socket pair: " + err.Error())
	}
	defer syscall.Close(ends[1])
	p = &Process{Socket: ends[0]}
	if err = p.start(&c, ends[1]); err != nil {
		syscall.Close(p.Socket)
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Process) start(c *Config, socket int) (err error) {
	if p.shared, err = mapShared(int(unsafe.Sizeof(Shared{}))); err != nil {
		return err
	}
	p.Shared = (*Shared)(unsafe.Pointer(&p.shared[0]))
	prepared := preparation{config: c, shared: p.Shared}
	defer prepared.release()
	if err = prepared.make(socket); err == nil {
		p.PID, err = prepared.holder.fork()
	}
	return err
}

// Close releases the shared memory. The socket remains.
func (p *Process) Close() {
	if p.shared != nil {
		unmap(p.shared)
		p.shared, p.Shared = nil, nil
	}
}

// Monotonic is the time of CLOCK_MONOTONIC, which all processes of a machine share.
func Monotonic() time.Duration { return time.Duration(clock(clockMonotonic)) }
