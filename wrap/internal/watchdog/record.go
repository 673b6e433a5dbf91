package watchdog

// Kind says what a Record tells.
type Kind uint8

// What the agent tells the watchdog.
const (
	Hello  Kind = 1 + iota // first of all: A = length of the Spec in bytes, B = number of descriptors sent before it
	Signal                 // send signal A once to every live worker
	Spare                  // workers that were there before A, by Monotonic, have had signal B to stop: Stop sends them none
	Stop                   // end the tree: A = grace in ns, B = 1 to begin with SIGABRT where it is caught
	Deaf                   // SIGABRT to workers that ignore SIGTERM, where it is caught
	Kill                   // SIGKILL everything, now
	Ask                    // have the sentinel report Answer, after all that has reached it
)

// What the watchdog tells the agent.
const (
	Started Kind = 64 + iota // worker Index runs: A = pid, B = Monotonic before its start
	Refused                  // worker Index could not be started: A = errno
	Skipped                  // worker Index was not started because Stop or Kill came before
	Ended                    // worker Index ended: A = wait status, B = ns it took, C = 1 if it had been told to stop
	Paused                   // worker Index was stopped: A = signal
	Resumed                  // worker Index was continued
	Left                     // A = pid of a descendant that did not die of SIGKILL within KillWait
	Gone                     // nothing of the tree is left but what Left named; the watchdog exits
)

// Record is the fixed-size message on the socket between agent and watchdog, both of the same binary.
type Record struct {
	Kind    Kind
	Index   int
	A, B, C int64
}

// RecordSize is the length of a Record on the wire, in bytes.
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

// encoding/binary would do, but it waits for package reflect (see the comment at the top of main.go).

func appendUint(b []byte, v uint64) []byte {
	return append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24), byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56))
}

func uint64At(b []byte) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}
