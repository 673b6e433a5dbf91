package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/hashicorp/go-multierror"
	"golang.org/x/sys/unix"

	"rdzv/wrap"
)

// FuzzParser: a parser finds the same frames however the text is divided, and does not accept more
// than its limits.
func FuzzParser(f *testing.F) {
	one := frame{kind: hello, body: []byte(`{"PID":1}`)}
	text, _ := one.header()
	f.Add(append(text, one.body...), 3)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0}, 1)
	f.Add([]byte{0, 0, 0, 0, 0, 1, 1, 0}, 8)
	f.Add([]byte{0, 0, 0, 1, 0, 0, 1}, 2)
	f.Fuzz(func(t *testing.T, text []byte, step int) {
		whole, errWhole := parse(text, len(text))
		parts, errParts := parse(text, max(1, step))
		if !reflect.DeepEqual(whole, parts) || (errWhole == nil) != (errParts == nil) {
			t.Errorf("%v, %v in one part; %v, %v in several", whole, errWhole, parts, errParts)
		}
		for _, f := range whole {
			if f.kind == hello {
				var m helloMessage
				_ = json.Unmarshal(f.body, &m)
			}
		}
	})
}

func parse(text []byte, step int) (list []frame, err error) {
	var p parser
	for len(text) > 0 && err == nil {
		n := min(step, len(text))
		p.add(text[:n], nil)
		text = text[n:]
		for ok := true; ok && err == nil; {
			var f frame
			if f, ok, err = p.next(); ok {
				list = append(list, f)
			}
		}
	}
	return list, err
}

// FuzzSpec: what an agent sends makes no runner fail otherwise than with an error.
func FuzzSpec(f *testing.F) {
	s, _, _ := specOf(&wrap.Tree{Workers: []wrap.Worker{{
		Path: "/x", Args: []string{"x"}, Env: []string{"A=1"}, Stdin: os.Stdin,
		Output: &wrap.Output{Tag: "t", Log: os.Stdout},
	}}}, nil)
	text, _ := json.Marshal(s)
	f.Add(text)
	f.Add([]byte(`{"Workers":[{}]}`))
	f.Add([]byte(`{"Lease":true}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s spec
		if json.Unmarshal(text, &s) == nil {
			var none []*os.File
			if _, err := s.tree([3]*os.File{}, &none); err == nil {
				t.Error("a tree without its files")
			}
		}
	})
}

// FuzzTexts: lists of texts survive.
func FuzzTexts(f *testing.F) {
	f.Add([]byte("a\x00b\x00"))
	f.Add([]byte{})
	f.Add([]byte("\x00"))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, all []byte) {
		text, _ := json.Marshal(all)
		var list, again texts
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
func pair(t *testing.T) (a, b *socket) {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b = newSocket(ends[0]), newSocket(ends[1])
	t.Cleanup(func() { a.close(); b.close() })
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
			a.send(hello, 1), a.send(runTree, large, files...), a.send(sendSignal, 2, files[:1]...),
			a.send(exit, nil))
		a.close()
	}()
	for i, want := range []struct {
		kind
		size, files int
	}{{hello, 1, 0}, {runTree, 4<<20 + 2, 600}, {sendSignal, 1, 1}, {exit, 0, 0}} {
		f, err := b.receive()
		if err != nil || f.kind != want.kind || len(f.body) != want.size || len(f.files) != want.files {
			t.Errorf("frame %d: kind %d, %d bytes, %d files, %v, want %+v", i, f.kind, len(f.body),
				len(f.files), err, want)
		}
		for _, fd := range f.files {
			var x, y unix.Stat_t
			if unix.Fstat(fd, &x) != nil || unix.Fstat(2, &y) != nil || x.Ino != y.Ino {
				t.Errorf("descriptor %d is another file", fd)
			}
		}
		closeAll(f.files)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if _, err := b.receive(); err != io.EOF {
		t.Errorf("receive: %v at the end", err)
	}
}

// TestTooFewFiles: a frame that names more files than have come.
func TestTooFewFiles(t *testing.T) {
	a, b := pair(t)
	f := frame{kind: hello, files: []int{2, 2}}
	text, _ := f.header()
	if err := a.write(text, []int{2}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.receive(); err == nil {
		t.Error("the frame was accepted")
	}
}

// TestFailures: errors remain what they are for errors.Is and errors.As.
func TestFailures(t *testing.T) {
	survivors := multierror.Append(wrap.ErrHolder,
		&wrap.SurvivorError{Process: wrap.Process{PID: 5, Name: "x"}},
		&wrap.SurvivorError{Process: wrap.Process{PID: 6, Name: "y"}})
	for _, err := range []error{
		nil, wrap.ErrHolder, wrap.ErrLeaseOver, wrap.ErrLogBlocked, wrap.ErrNotRead, syscall.ENOSPC,
		fmt.Errorf("cannot start: %w", syscall.ENOENT), &wrap.OutputError{Err: syscall.EIO},
		&wrap.OutputError{Err: wrap.ErrNotRead}, survivors, errors.New("\xff"),
	} {
		text, errJSON := json.Marshal(failureOf(err))
		var f *failure
		if errJSON = errors.Join(errJSON, json.Unmarshal(text, &f)); errJSON != nil {
			t.Fatal(errJSON)
		}
		got := f.error()
		if (got == nil) != (err == nil) || err != nil && got.Error() != err.Error() {
			t.Errorf("%v becomes %v", err, got)
			continue
		}
		for _, k := range append(known, syscall.ENOSPC, syscall.ENOENT, syscall.EIO) {
			if errors.Is(got, k) != errors.Is(err, k) {
				t.Errorf("%v: errors.Is(%v) = %t", err, k, errors.Is(got, k))
			}
			if err == k && slices.Contains(known, k) && got != k {
				t.Errorf("%v becomes another error", err)
			}
		}
		_, isOutput := errors.AsType[*wrap.OutputError](err)
		if _, is := errors.AsType[*wrap.OutputError](got); is != isOutput {
			t.Errorf("%v: OutputError %t", err, is)
		}
		all, _ := errors.AsType[*multierror.Error](got)
		if err == error(survivors) && (all == nil || len(all.Errors) != 2) {
			t.Errorf("survivors become %+v", got)
		}
	}
}

// TestFields: specOf knows all fields of a tree, or the others are known to be for the agent alone.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		value any
		names []string
	}{
		{wrap.Tree{}, []string{
			"Workers", "Grace", "Linger", "Signalled", "JobControl", "FrozenLimit", "Lease", "LeaseGrace",
			"Held",
			"Started", "Ended", "Dumping", "LogLost", "OutputLost", // setCallbacks
			"Source", "Owner", // those of the runner
			"Signals", "StartNow", "DumpStacks", "Kill", // orders
		}},
		{wrap.Worker{}, []string{
			"Path", "Args", "Env", "Dir", "Stdin", "Stdout", "Stderr", "Capture", "Output", "LastOutput",
			"StartAt", "Bind", "Line",
		}},
		{wrap.Output{}, []string{"Log", "Tag", "Hold", "Relayed"}},
		{wrap.Binding{}, []string{"CPUs", "Node"}},
		{wrap.Stop{}, []string{"Err", "Delivered", "At", "Groups", "DumpStacks"}},
		{wrap.Event{}, []string{"Signal", "Shared", "At"}},
		{wrap.Dump{}, []string{"Worker", "IgnoresTerm"}},
		{wrap.Result{}, []string{
			"PID", "Code", "Signal", "Stopped", "GroupSignal", "Took", "Stderr", "Joined", "Err",
		}},
	} {
		typ := reflect.TypeOf(c.value)
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; !slices.Contains(c.names, name) {
				t.Errorf("a runner does not know field %s of %v", name, typ)
			}
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// unwrapAll is the errno of an error.
func unwrapAll(err error) error {
	errno, _ := errors.AsType[syscall.Errno](err)
	return errno
}
