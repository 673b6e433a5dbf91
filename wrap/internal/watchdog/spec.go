package watchdog

import "errors"

// Worker is one program to start.
type Worker struct {
	Path  string   // what is executed, after Dir has become the working directory
	Dir   string   // "" keeps the agent's
	Args  []string // argv, its first entry included
	Env   []string
	Files [3]int // stdin, stdout, stderr: index among the descriptors sent, or Null
}

// Null as one of Worker.Files stands for /dev/null.
const Null = -1

// Spec is all that the watchdog is to start.
type Spec struct {
	Group      int // process group of the workers, the agent's; 0 leaves them in the watchdog's
	TimerSlack int // of the workers, in ns, as the watchdog's own is another; 0 leaves it
	Workers    []Worker
}

// Bytes encodes s.
func (s Spec) Bytes() []byte {
	b := appendUint(nil, uint64(s.Group))
	b = appendUint(b, uint64(s.TimerSlack))
	b = appendUint(b, uint64(len(s.Workers)))
	for _, w := range s.Workers {
		b = appendString(b, w.Path)
		b = appendString(b, w.Dir)
		b = appendStrings(b, w.Args)
		b = appendStrings(b, w.Env)
		for _, f := range w.Files {
			b = appendUint(b, uint64(f))
		}
	}
	return b
}

// ErrSpec says that a Spec is not what Bytes makes.
var ErrSpec = errors.New("malformed spec")

// ParseSpec decodes what Bytes made.
func ParseSpec(b []byte) (Spec, error) {
	r := reader{rest: b}
	s := Spec{Group: r.int(), TimerSlack: r.int()}
	for range r.count() {
		w := Worker{Path: r.string(), Dir: r.string(), Args: r.strings(), Env: r.strings()}
		for i := range w.Files {
			w.Files[i] = r.int()
		}
		s.Workers = append(s.Workers, w)
	}
	if r.bad || len(r.rest) > 0 {
		return Spec{}, ErrSpec
	}
	return s, nil
}

func appendString(b []byte, s string) []byte {
	return append(appendUint(b, uint64(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = appendUint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

// reader takes values off the front of rest; after the first that is not there, bad is set and all are zero.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) int() int {
	if r.bad || len(r.rest) < 8 {
		r.bad = true
		return 0
	}
	v := uint64At(r.rest)
	r.rest = r.rest[8:]
	return int(v)
}

// count reads a length; each thing counted takes at least one byte, so none can be greater than what is left.
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
