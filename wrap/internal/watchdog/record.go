package watchdog

// Kind is the type of a Record.
type Kind uint8

// Records from the agent to the watchdog.
const (
	// Hello is the first record: A = length of the Spec in bytes, B = number of descriptors that
	// are sent between it and the Spec.
	Hello Kind = 1 + iota
	// Signal sends signal A once to every running worker.
	Signal
	// AlreadySignalled says that workers started before A, by Monotonic, have received the signal B
	// to end: Stop sends them none.
	AlreadySignalled
	// Stop ends the tree: A = grace in ns; with B = 1 SIGABRT replaces SIGTERM where it is caught.
	Stop
	// DumpStacks sends SIGABRT to workers that ignore SIGTERM and catch SIGABRT.
	DumpStacks
	// Kill sends SIGKILL to everything now.
	Kill
	// Query makes the sentinel report QueryReply, after all signals that it has received before.
	Query
)

// Records from the watchdog to the agent.
const (
	// Started: worker Index runs; A = pid, B = Monotonic before its start.
	Started Kind = 64 + iota
	// Refused: worker Index could not be started; A = errno.
	Refused
	// Skipped: worker Index was not started because Stop or Kill came first.
	Skipped
	// Ended: worker Index ended; A = wait status, B = run time in ns, C = 1 if it had received a
	// signal to end.
	Ended
	// Suspended: worker Index was stopped by the signal A, as in job control.
	Suspended
	// Continued: worker Index was continued.
	Continued
	// Survivor: the descendant with pid A did not die of SIGKILL within KillWait.
	Survivor
	// Finished: nothing of the tree is left but the Survivors; the watchdog exits.
	Finished
)

// Record is the message of fixed size on the socket between agent and watchdog, which are the same
// executable.
type Record struct {
	Kind    Kind
	Index   int
	A, B, C int64
}

// RecordSize is the length of an encoded Record in bytes.
const RecordSize = 32

// Bytes encodes r.
func (r Record) Bytes() []byte {
	b := make([]byte, 0, RecordSize)
	b = appendUint(b, uint64(r.Kind)|uint64(r.Index)<<32)
	b = appendUint(b, uint64(r.A))
	b = appendUint(b, uint64(r.B))
	return appendUint(b, uint64(r.C))
}

// ParseRecord decodes the RecordSize bytes of b.
func ParseRecord(b []byte) Record {
	head := uint64At(b)
	return Record{
		Kind:  Kind(head),
		Index: int(head >> 32),
		A:     int64(uint64At(b[8:])),
		B:     int64(uint64At(b[16:])),
		C:     int64(uint64At(b[24:])),
	}
}

// Package encoding/binary is not used because it imports reflect, see the package comment.

func appendUint(b []byte, v uint64) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24),
		byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56))
}

func uint64At(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
