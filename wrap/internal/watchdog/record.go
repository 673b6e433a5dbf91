package watchdog

import "unsafe"

// Kind is the type of a Record.
type Kind uint8

// Records from the agent to the watchdog.
const (
	// Hello is the first record: A = length in bytes of the Spec that follows, B = number of
	// descriptors that are sent after the Spec, C = timer slack of the workers in ns (prctl(2)), 0
	// for the watchdog's.
	Hello Kind = 1 + iota
	// Signal sends signal A once to every worker that was not started before B, by Monotonic: those
	// have received it. Workers that have not been started get it when they have. With C = 1 only
	// workers that it does not end get it.
	Signal
	// AlreadySignalled says that workers started before A, by Monotonic, have received the signal B
	// to end: Stop sends them none.
	AlreadySignalled
	// Stop ends the tree: A = grace in ns; with B = 1 SIGABRT replaces SIGTERM where it is caught.
	Stop
	// DumpStacks sends SIGABRT to workers that ignore SIGTERM and catch SIGABRT, after Dumping.
	DumpStacks
	// Announced is the answer to Dumping: the user has been told.
	Announced
	// Kill sends SIGKILL to everything now.
	Kill
	// Query makes the sentinel report QueryReply, after all signals that it has received before.
	Query
	// Renew says that the tree may run until A by package boottime, 0 without a limit, and that its
	// workers have B ns after SIGTERM then.
	Renew
	// StartNow starts the workers that wait for their StartAt.
	StartNow
	// LimitFreeze says that the agent is to be killed when it has been frozen for longer than A ns.
	LimitFreeze
)

// Records from the watchdog to the agent.
const (
	// Up is the first one: the watchdog has started and survives signals; A = its pid. The holder
	// sends it if it could not start the watchdog; B = errno.
	Up Kind = 64 + iota
	// Started: worker Index runs; A = pid, B = Monotonic before its start.
	Started
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
	// Dumping: worker Index will receive SIGABRT after Announced, at most AnnounceWait later; A = 1
	// if it ignores SIGTERM, B = how many more such records follow at once.
	Dumping
	// Drained: what worker Index itself had written to stdout (A = 0; both streams, if Joined) or
	// stderr (A = 1) when it ended has been copied (Output.Piped).
	Drained
	// OutputLost: B bytes of worker Index could not be shown because of errno A, or because nobody
	// read them if A is 0; C is the stream, as A of Drained.
	OutputLost
	// LogLost: the log file of worker Index is given up because of errno A, or because it blocked
	// if A is 0; at the end once more, with B bytes that are not in it and C = 1.
	LogLost
	// LeaseOver: the tree is being ended because the time of Renew has passed.
	LeaseOver
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
