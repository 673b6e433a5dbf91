package holder

import "unsafe"

// Kind is the type of a Record.
type Kind uint8

// Records from the agent to the holder.
const (
	// Start starts worker Index.
	Start Kind = 1 + iota
	// Signal sends signal B to the child with pid A, unless it has ended or is not its child. C are
	// flags.
	Signal
	// Drop closes what the holder keeps of the output of worker Index.
	Drop
	// Finish makes the holder end when it has no children any more. No worker is started then.
	Finish
	// Kill sends SIGKILL to everything and is otherwise like Finish.
	Kill
	// Look says that Shared has changed.
	Look
)

// Flags of Signal.
const (
	Group = 1 << iota // the signal is for the process group of the child
	End               // Ended then says that the child had received a signal to end
)

// Records from the holder to the agent.
const (
	// Started: worker Index runs; A = pid, B = Monotonic before its start.
	Started Kind = 64 + iota
	// Refused: worker Index could not be started; A = errno.
	Refused
	// Ended: worker Index ended; A = wait status, B = Monotonic, C = 1 if it had received a signal
	// with End.
	Ended
	// Suspended: worker Index was stopped by the signal A.
	Suspended
	// Continued: worker Index was continued.
	Continued
	// Received: the holder received signal A.
	Received
	// Paused: the holder was stopped until now.
	Paused
	// LeaseOver: the holder ends the tree because the time of Shared has passed.
	LeaseOver
	// Survivor: the child with pid A did not die of SIGKILL within KillWait.
	Survivor
	// Finished: the holder has no children but the Survivors. Without those, it ends when Drop has
	// been ordered for each worker that has a log.
	Finished
)

// Record is a message of the socket between agent and holder.
type Record struct {
	Kind    Kind
	Index   int
	A, B, C int64
}

// RecordSize is the length of an encoded Record in bytes.
const RecordSize = int(unsafe.Sizeof(Record{}))

// Bytes encodes r.
func (r Record) Bytes() []byte {
	b := *(*[RecordSize]byte)(unsafe.Pointer(&r))
	return b[:]
}

// ParseRecord decodes the RecordSize bytes of b.
func ParseRecord(b []byte) Record {
	_ = b[RecordSize-1]
	return *(*Record)(unsafe.Pointer(&b[0]))
}
