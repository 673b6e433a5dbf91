// Package frames sends messages and descriptors over a stream socket between two processes.
package frames

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// A Frame is one message: a header, a body, and descriptors, which arrive with the header.
//
//	length of the body (4 bytes, big-endian)
//	number of descriptors (2 bytes, big-endian)
//	kind (1 byte)
//	0
type Frame struct {
	Kind  uint8
	Body  []byte
	Files []int // they belong to whoever has the frame
}

const (
	headerSize = 8
	// maxBody is more than the environments of all workers of a task have.
	maxBody = 64 << 20
	// maxFiles is how many descriptors a frame may have.
	maxFiles = 1000
	// filesPerMessage is how many the kernel passes at once (SCM_MAX_FD is 253). A frame with more
	// has them with the bytes of its header.
	filesPerMessage = 250
)

// ErrTooLarge is why a frame cannot be sent to anybody.
var ErrTooLarge = errors.New("the message is too large")

// header is the header of f.
func (f *Frame) header() ([]byte, error) {
	if len(f.Body) > maxBody || len(f.Files) > maxFiles {
		return nil, fmt.Errorf("%w: %d bytes with %d files", ErrTooLarge, len(f.Body), len(f.Files))
	}
	b := make([]byte, headerSize, headerSize+len(f.Body))
	binary.BigEndian.PutUint32(b, uint32(len(f.Body)))
	binary.BigEndian.PutUint16(b[4:], uint16(len(f.Files)))
	b[6] = f.Kind
	return b, nil
}

// parser finds the frames in what has been received.
type parser struct {
	text  []byte
	files []int
}

func (p *parser) add(text []byte, files []int) {
	p.text, p.files = append(p.text, text...), append(p.files, files...)
}

// next returns the next frame, if all of it has been received. After an error there are no others.
func (p *parser) next() (f Frame, ok bool, err error) {
	if len(p.text) < headerSize {
		return f, false, nil
	}
	size := int64(binary.BigEndian.Uint32(p.text))
	files := int(binary.BigEndian.Uint16(p.text[4:]))
	switch {
	case size > maxBody || files > maxFiles || p.text[7] != 0:
		return f, false, errors.New("the other side does not speak the protocol")
	case int64(len(p.text)) < headerSize+size:
		return f, false, nil
	case len(p.files) < files:
		return f, false, errors.New("the other side has passed too few files")
	}
	end := headerSize + int(size)
	f = Frame{Kind: p.text[6], Body: p.text[headerSize:end:end], Files: p.files[:files:files]}
	p.text, p.files = p.text[end:], p.files[files:]
	if len(p.text) == 0 { // the memory belongs to f now
		p.text = nil
	}
	return f, true, nil
}

// close closes the descriptors that no frame has got.
func (p *parser) close() {
	CloseAll(p.files)
	p.files = nil
}

// CloseAll closes descriptors.
func CloseAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
