package job

import (
	"fmt"
	"time"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/record"
)

// Change is a put or the deletion of a key, whose name is without the prefix of the job's run. The
// changes of one revision are in the order in which they were made.
type Change struct {
	Key   string
	Value any   // a value of the key's type, or its JSON form as []byte; nil: the key is deleted
	Rev   int64 // of the store
}

// Write is a transaction. It has no effect unless its conditions are true and this agent still
// leads the job. It may be executed twice if its answer is lost, and has an effect once: what
// others wait for is put if it is not there. What it puts exists as long as the job. One that is
// larger than the store permits may be committed in parts, each with the same conditions, until one
// has no effect.
type Write struct {
	What string // for errors: "publish the world"
	If   []Cond
	Ops  []Op
}

// Cond is the condition that a key exists, or does not, or has not changed since a revision.
type Cond struct {
	Key    string
	Exists bool
	Rev    int64 // of its last change; 0 is any
}

// Op puts a key or, if Value is nil, deletes one, or all from Key up to but not including End.
type Op struct {
	Key, End string
	Value    any
}

// A Notice tells the caller of something that needs no answer: a record.Waiting while agents are
// missing, a record.NodesDiffer, a record.Stragglers, or one of the types below.
type Notice any

type (
	// Warning has an error that does not end the job.
	Warning struct{ Err error }
	// Forgotten says that no agent needs what is older than a revision.
	Forgotten struct{ Rev int64 }
)

// turn is one call of Apply, and what it returns.
type turn struct {
	now       time.Time
	restoring bool // what is read has happened before
	writes    []Write
	notices   []Notice
}

func (t *turn) write(what string, conds []Cond, ops ...Op) {
	t.writes = append(t.writes, Write{what, conds, ops})
}

func (t *turn) notify(n Notice) { t.notices = append(t.notices, n) }

func (t *turn) warn(err error) { t.notify(Warning{err}) }

// earliest is the first of several times that is later than another one; zero is none.
type earliest struct{ after, time time.Time }

func (e *earliest) add(at time.Time) {
	if at.After(e.after) && (e.time.IsZero() || at.Before(e.time)) {
		e.time = at
	}
}

// read returns the value of a key.
func read[T any](value any) (T, error) {
	switch v := value.(type) {
	case T:
		return v, nil
	case []byte:
		return record.Decode[T](v)
	}
	var none T
	return none, fmt.Errorf("%T, not %T", value, none)
}

// run are the keys of the job, whose names are without the prefix of its run.
var run keys.Run

func absent(key string) Cond { return Cond{Key: key} }
