package watchdog

import (
	"errors"
	"time"
)

// Worker is one program to start.
type Worker struct {
	Path  string   // executable; a relative path is resolved in Dir
	Dir   string   // working directory; "" is the agent's
	Args  []string // argv, including argv[0]
	Env   []string // "NAME=value"
	Files [3]int   // stdin, stdout, stderr: index into the descriptors sent, or Null

	StartAt time.Duration // when to start it, by Monotonic; 0 is at once

	CPUs []int // its affinity; the agent's if empty
	Node int   // NUMA node from which it prefers memory, or AnyNode

	Output Output
}

// Output says whether this process reads what a worker writes, see output.go. stdout and stderr of
// Worker.Files are then where that is shown.
type Output struct {
	Piped   bool
	Joined  bool   // stdout and stderr are one pipe, shown as stdout
	Log     int    // of stdout and stderr, if Joined; a descriptor, as Worker.Files
	Tail    int    // the file of a tee.Tail for stderr; the same
	Tag     string // see tee.Tee
	Hold    bool
	Relayed bool // see tee.NewScreen
}

// Null in Worker.Files is /dev/null.
const Null = -1

// Spec is what the watchdog starts, and what it does if the agent crashes.
type Spec struct {
	Workers    []Worker
	Crash      Crash
	LeaseUntil time.Duration // this and the next one as in Renew
	LeaseGrace time.Duration
}

// Bytes encodes s.
func (s Spec) Bytes() []byte {
	b := appendInt(nil, s.Crash.Trace)
	b = appendInt(b, s.Crash.Stderr)
	b = appendString(b, s.Crash.Path)
	b = appendString(b, s.Crash.Line)
	b = appendInt(b, int(s.LeaseUntil))
	b = appendInt(b, int(s.LeaseGrace))
	b = appendInt(b, len(s.Workers))
	for _, w := range s.Workers {
		b = appendString(b, w.Path)
		b = appendString(b, w.Dir)
		b = appendStrings(b, w.Args)
		b = appendStrings(b, w.Env)
		for _, f := range w.Files {
			b = appendInt(b, f)
		}
		b = appendInt(b, int(w.StartAt))
		b = appendInt(b, len(w.CPUs))
		for _, cpu := range w.CPUs {
			b = appendInt(b, cpu)
		}
		b = appendInt(b, w.Node)
		b = w.Output.append(b)
	}
	return b
}

// ErrSpec is the error of bytes that do not encode a Spec.
var ErrSpec = errors.New("malformed spec")

// ParseSpec decodes the result of Bytes. Its error is ErrSpec.
func ParseSpec(b []byte) (s Spec, err error) {
	r := reader{rest: b}
	s.Crash = Crash{Trace: r.int(), Stderr: r.int(), Path: r.string(), Line: r.string()}
	s.LeaseUntil, s.LeaseGrace = time.Duration(r.int()), time.Duration(r.int())
	for range r.count() {
		w := Worker{Path: r.string(), Dir: r.string(), Args: r.strings(), Env: r.strings()}
		for i := range w.Files {
			w.Files[i] = r.int()
		}
		w.StartAt = time.Duration(r.int())
		for range r.count() {
			w.CPUs = append(w.CPUs, r.int())
		}
		w.Node = r.int()
		w.Output = r.output()
		s.Workers = append(s.Workers, w)
	}
	if r.bad || len(r.rest) > 0 {
		return Spec{}, ErrSpec
	}
	return s, nil
}

func (o Output) append(b []byte) []byte {
	for _, v := range []bool{o.Piped, o.Joined, o.Hold, o.Relayed} {
		b = appendBool(b, v)
	}
	return appendString(appendInt(appendInt(b, o.Log), o.Tail), o.Tag)
}

func (r *reader) output() (o Output) {
	for _, v := range []*bool{&o.Piped, &o.Joined, &o.Hold, &o.Relayed} {
		*v = r.int() == 1
	}
	o.Log, o.Tail, o.Tag = r.int(), r.int(), r.string()
	return o
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return appendInt(b, 1)
	}
	return appendInt(b, 0)
}

// appendInt appends v. Package encoding/binary is not used because it imports reflect, see the
// package comment.
func appendInt(b []byte, v int) []byte {
	for i := range 8 {
		b = append(b, byte(uint64(v)>>(8*i)))
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(appendInt(b, len(s)), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = appendInt(b, len(list))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

// reader decodes values from the front of rest. If one is missing, bad is set, and this value and
// all later ones are zero.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) int() int {
	if r.bad || len(r.rest) < 8 {
		r.bad = true
		return 0
	}
	var v uint64
	for i, b := range r.rest[:8] {
		v |= uint64(b) << (8 * i)
	}
	r.rest = r.rest[8:]
	return int(v)
}

// count reads a length. Each counted element takes at least one byte, so a length greater than the
// number of remaining bytes is malformed.
func (r *reader) count() int {
	n := r.int()
	if n < 0 || n > len(r.rest) {
		r.bad = true
		return 0
	}
	return n
}

func (r *reader) string() string {
	n := r.count()
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *reader) strings() []string {
	var list []string
	for range r.count() {
		list = append(list, r.string())
	}
	return list
}
