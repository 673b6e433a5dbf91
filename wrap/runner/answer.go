package runner

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"rdzv/wrap"
)

// maxFile is how much of a file is read.
const maxFile = 8 << 20

// answer answers a question of the agent, in a goroutine of its own: a file may hang.
func (s *server) answer(f *frame) error {
	var q question
	if err := f.decode(&q); err != nil {
		return err
	}
	k := f.kind
	s.answers.Go(func() {
		a := answer{ID: q.ID}
		if k == remaining {
			a.Processes = wrap.Remaining()
		} else {
			text, err := readProc(string(q.Name))
			a.Text, a.Err = text, failureOf(err)
		}
		_ = s.socket.send(answerFrame, a) // or the agent is lost
	})
	return nil
}

// readProc reads a file below /proc.
func readProc(name string) ([]byte, error) {
	if !strings.HasPrefix(path.Clean(name), "/proc/") {
		return nil, &os.PathError{Op: "read", Path: name, Err: errors.New("it is not below /proc")}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}
