package starter

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"rdzv/cmd/rdzv/internal/console"
)

// A frame is its length (4 bytes, big-endian), and so many bytes: a kind, and what belongs to it.
// Orders and reports are JSON; what workers write, of which there can be much, is as it is.
const (
	asJSON   = 'j'
	asOutput = 'o' // the stream (1 byte), the rank (4 bytes, big-endian), and what it has written

	headerSize = 4
	outputSize = 1 + 1 + 4 // what is before the text in a frame of asOutput
	// maxFrame is more than the start of a program takes: its arguments and the variables are at most
	// 2 MiB in all, and JSON writes some bytes of them as six.
	maxFrame = 16 << 20
)

// errForeign is why a stream is not read any further.
var errForeign = errors.New("what was received is not of rdzv")

// An Order is what the starter tells a node: what is set in it. If nothing is, it only says that
// the starter is alive.
type Order struct {
	Start  *Start   `json:",omitempty"` // the first order
	Join   []string `json:",omitempty"` // the addresses of the store, for all nodes but the first
	Signal int      `json:",omitempty"` // to the agent
	Input  []byte   `json:",omitempty"` // of rank 0
	EndOf  bool     `json:",omitempty"` // of the input
	Unread int      `json:",omitempty"` // nobody reads this stream of the workers any more
	Sleep  bool     `json:",omitempty"` // the starter is about to be stopped
	Wake   bool     `json:",omitempty"` // and goes on
	End    string   `json:",omitempty"` // why the node has to end its part of the job
}

// Start says what a node is to run.
type Start struct {
	Node, Nodes int
	Token, Job  string
	Check       bool     // the nodes are checked, and nothing is run
	Workers     int      // 0: as the flags say
	Dir         string   // where the starter was started
	Flags       []string // of exec or check
	Variables   []string // of flags, as NAME=VALUE
	Export      []string // NAME=VALUE, which replace those of the login
	Program     []string
	Input       bool         // rank 0 gets input
	Joined      bool         // stdout and stderr lead to the same place
	Screen      console.Kind // where stderr leads
}

// A Report is what a node tells the starter: what is set in it. If nothing is, it only says that
// the node is alive.
type Report struct {
	Hello  string   `json:",omitempty"` // the node's own name, first of all
	Store  []string `json:",omitempty"` // the addresses of the store
	Line   *Line    `json:",omitempty"`
	Taken  int      `json:",omitempty"` // how many bytes of the input rank 0 has got
	File   string   `json:",omitempty"` // which file is to get Text
	Text   []byte   `json:",omitempty"`
	Exit   *int     `json:",omitempty"` // the exit code of the agent, last of all
	Output *Output  `json:"-"`
}

// A Line is what the console of an agent writes.
type Line struct {
	About  Subject
	Record console.Record
}

// Output is something that a worker has written.
type Output struct {
	Stream int // 1 or 2
	Rank   int
	Text   []byte
}

// Subject is what a line is about, which decides whether it is shown for each node.
type Subject string

const (
	Node      Subject = "node"      // this node: shown, but the same line of several nodes once
	Job       Subject = "job"       // what every agent knows: shown for the first node
	Ended     Subject = "ended"     // how the job ended: shown once
	Signalled Subject = "signalled" // the same, by a signal to the node that the line names
	Failed    Subject = "failed"    // the same, unless a report on the failure follows
	Failure   Subject = "failure"   // the report: shown once
)

// frameOf is the frame of an order or report.
func frameOf(value any) ([]byte, error) {
	if r, is := value.(Report); is && r.Output != nil {
		b := make([]byte, headerSize, headerSize+outputSize+len(r.Output.Text))
		b = append(b, asOutput, byte(r.Output.Stream))
		b = binary.BigEndian.AppendUint32(b, uint32(r.Output.Rank))
		return withLength(append(b, r.Output.Text...))
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return withLength(append([]byte{0, 0, 0, 0, asJSON}, text...))
}

// withLength completes a frame.
func withLength(b []byte) ([]byte, error) {
	if len(b) > headerSize+maxFrame {
		return nil, fmt.Errorf("%d bytes, and at most %d can be sent", len(b), maxFrame)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-headerSize))
	return b, nil
}

// receive reads a frame: the body with its kind. io.EOF is the end between two frames. Memory is
// used for what has come, not for what the length promises.
func receive(r io.Reader) ([]byte, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(header[:])
	if size == 0 || size > maxFrame {
		return nil, errForeign
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, int64(size)); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return body.Bytes(), nil
}

// receiveOrder reads an order.
func receiveOrder(r io.Reader) (o Order, err error) {
	body, err := receive(r)
	if err != nil {
		return o, err
	}
	return o, decode(body, &o)
}

// receiveReport reads a report.
func receiveReport(r io.Reader) (report Report, err error) {
	body, err := receive(r)
	if err != nil || body[0] != asOutput {
		if err == nil {
			err = decode(body, &report)
		}
		return report, err
	}
	if len(body) < outputSize || body[1] != 1 && body[1] != 2 {
		return report, errForeign
	}
	report.Output = &Output{
		Stream: int(body[1]), Rank: int(binary.BigEndian.Uint32(body[2:])), Text: body[outputSize:],
	}
	return report, nil
}

func decode(body []byte, to any) error {
	if body[0] != asJSON || json.Unmarshal(body[1:], to) != nil {
		return errForeign
	}
	return nil
}

// sender writes frames. It may be used by several goroutines.
type sender struct {
	mu  sync.Mutex
	to  io.Writer
	err error // after which nothing is written
}

func (s *sender) send(value any) error {
	b, err := frameOf(value)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		_, s.err = s.to.Write(b)
	}
	return s.err
}
