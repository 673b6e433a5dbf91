package frames

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Kinds of frames.
const (
	hello uint8 = 1 + iota
	runTree
	sendSignal
	exit
)

// FuzzParser: a parser finds the same frames however the text is divided, and does not accept more
// than its limits.
func FuzzParser(f *testing.F) {
	one := Frame{Kind: hello, Body: []byte(`{"PID":1}`)}
	text, _ := one.header()
	f.Add(append(text, one.Body...), 3)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0}, 1)
	f.Add([]byte{0, 0, 0, 0, 0, 1, 1, 0}, 8)
	f.Add([]byte{0, 0, 0, 1, 0, 0, 1}, 2)
	f.Fuzz(func(t *testing.T, text []byte, step int) {
		whole, errWhole := parse(text, len(text))
		parts, errParts := parse(text, max(1, step))
		if !reflect.DeepEqual(whole, parts) || (errWhole == nil) != (errParts == nil) {
			t.Errorf("%v, %v in one part; %v, %v in several", whole, errWhole, parts, errParts)
		}
	})
}

func parse(text []byte, step int) (list []Frame, err error) {
	var p parser
	for len(text) > 0 && err == nil {
		n := min(step, len(text))
		p.add(text[:n], nil)
		text = text[n:]
		for ok := true; ok && err == nil; {
			var f Frame
			if f, ok, err = p.next(); ok {
				list = append(list, f)
			}
		}
	}
	return list, err
}

// FuzzTexts: lists of texts survive.
func FuzzTexts(f *testing.F) {
	f.Add([]byte("a\x00b\x00"))
	f.Add([]byte{})
	f.Add([]byte("\x00"))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, all []byte) {
		text, _ := json.Marshal(all)
		var list, again Texts
		if list.UnmarshalJSON(text) != nil {
			return
		}
		encoded, err := json.Marshal(list)
		if err == nil {
			err = json.Unmarshal(encoded, &again)
		}
		if err != nil || !slices.Equal(list, again) {
			t.Errorf("%q becomes %q, %v", list, again, err)
		}
	})
}

// pair are two connected sockets.
func pair(t *testing.T) (a, b *Socket) {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b = New(ends[0]), New(ends[1])
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// TestSocket: frames with many files and large bodies arrive in order.
func TestSocket(t *testing.T) {
	a, b := pair(t)
	large := bytes.Repeat([]byte("x"), 3<<20)
	var files []*os.File
	for range 600 {
		files = append(files, os.Stderr)
	}
	sent := make(chan error, 1)
	go func() {
		sent <- errors.Join(
			a.Send(hello, 1), a.Send(runTree, large, files...), a.Send(sendSignal, 2, files[:1]...),
			a.Send(exit, nil))
		a.Close()
	}()
	for i, want := range []struct {
		kind        uint8
		size, files int
	}{{hello, 1, 0}, {runTree, 4<<20 + 2, 600}, {sendSignal, 1, 1}, {exit, 0, 0}} {
		f, err := b.Receive()
		if err != nil || f.Kind != want.kind || len(f.Body) != want.size || len(f.Files) != want.files {
			t.Errorf("frame %d: kind %d, %d bytes, %d files, %v, want %+v", i, f.Kind, len(f.Body),
				len(f.Files), err, want)
		}
		for _, fd := range f.Files {
			var x, y unix.Stat_t
			if unix.Fstat(fd, &x) != nil || unix.Fstat(2, &y) != nil || x.Ino != y.Ino {
				t.Errorf("descriptor %d is another file", fd)
			}
		}
		CloseAll(f.Files)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if _, err := b.Receive(); err != io.EOF {
		t.Errorf("receive: %v at the end", err)
	}
}

// TestTooFewFiles: a frame that names more files than have come is refused, and those are closed.
func TestTooFewFiles(t *testing.T) {
	a, b := pair(t)
	f := Frame{Kind: hello, Files: []int{2, 2}}
	text, _ := f.header()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.write(text, []int{int(w.Fd())}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if _, err := b.Receive(); err == nil {
		t.Error("the frame was accepted")
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the file of the frame is open: read %d, %v", n, err)
	}
}
