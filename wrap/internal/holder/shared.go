package holder

import "unsafe"

// Shared is memory that agent and holder share. The agent writes it.
type Shared struct {
	LeaseUntil int64 // when the workers' time is over, by boottime, in ns, without Config.Until
	LeaseGrace int64 // how long after SIGTERM they may run then, in ns
	Held       int64 // 1: it is over, and the agent has stopped the tree
	FrozenFor  int64 // how long the agent may be stopped while the tree runs, in ns; 0 is for ever
}

// Chunk is shared memory for output of a worker that the agent has read and may not have written to
// the log. The holder writes it there if the agent is killed.
type Chunk struct {
	// Size is the size that the log had before the chunk.
	Size int64
	// Bytes begin with the chunk, and Fill follows to the end. It is no byte of a text.
	Bytes [ChunkSize]byte
}

const (
	ChunkSize = 128 << 10
	Fill      = 0xff
)

// NewChunk returns a Chunk without bytes.
func NewChunk() (*Chunk, error) {
	memory, err := mapShared(int(unsafe.Sizeof(Chunk{})))
	if err != nil {
		return nil, err
	}
	c := (*Chunk)(unsafe.Pointer(&memory[0]))
	for i := range c.Bytes {
		c.Bytes[i] = Fill
	}
	return c, nil
}

// Close releases the memory of c.
func (c *Chunk) Close() {
	unmap(unsafe.Slice((*byte)(unsafe.Pointer(c)), unsafe.Sizeof(*c)))
}
