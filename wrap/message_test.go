package wrap

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-multierror"
)

// FuzzTree: what an agent sends makes no runner fail otherwise than with an error.
func FuzzTree(f *testing.F) {
	m, files := messageOf(&Tree{Workers: []Worker{{
		Path: "/x", Args: []string{"x"}, Env: []string{"A=1"}, Stdin: os.Stdin,
		Output: &Output{Tag: "t", Log: os.Stdout},
	}}})
	text, _ := json.Marshal(m)
	f.Add(text, len(files))
	f.Add([]byte(`{"Workers":[{}]}`), 0)
	f.Add([]byte(`{"Tree":{"Workers":[{}]},"Workers":[{"Names":"AAAA"}],"Held":true}`), 3)
	f.Fuzz(func(t *testing.T, text []byte, n int) {
		var m treeMessage
		if json.Unmarshal(text, &m) != nil {
			return
		}
		tree, err := m.tree(make([]*os.File, max(0, min(n, 1000))))
		if err == nil && (len(tree.Workers) == 0 || tree.check() != nil) {
			t.Errorf("a tree that cannot be run: %+v", tree)
		}
	})
}

// TestTreeMessage: a runner gets the tree of its agent, with the files of each worker.
func TestTreeMessage(t *testing.T) {
	node := 1
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	tree := Tree{
		Workers: []Worker{
			{
				Path: "\xff", Args: []string{"", "\xfe"}, Env: []string{"A=\"\x80"}, Dir: "/\xfd",
				Stdin: null, Stdout: os.Stdout, Stderr: os.Stdout,
				Output: &Output{Log: os.Stderr, Tag: "\xfc", Hold: true, Relayed: true},
				Bind:   Binding{CPUs: []int{1}, Node: &node}, StartAt: time.Now().Add(time.Hour),
			},
			{Path: "/bin/true", Capture: true, Stderr: null},
		},
		Grace: 1, Linger: true, Signalled: Everyone, JobControl: true, FrozenLimit: 2, LeaseGrace: 3,
		Held: &HeldSocket{null, null, null},
	}
	m, files := messageOf(&tree)
	text, err := json.Marshal(m)
	var got treeMessage
	if err = errors.Join(err, json.Unmarshal(text, &got)); err != nil {
		t.Fatal(err)
	}
	back, err := got.tree(files)
	if err != nil {
		t.Fatal(err)
	}
	at := &back.Workers[0].StartAt
	if late := at.Sub(tree.Workers[0].StartAt).Abs(); late > time.Second {
		t.Errorf("it starts %v later or earlier", late)
	}
	*at = tree.Workers[0].StartAt
	if !reflect.DeepEqual(*back, tree) {
		t.Errorf("%+v becomes %+v", tree, *back)
	}
	if _, err := got.tree(files[:3]); err == nil {
		t.Error("a tree without its files is accepted")
	}
}

// TestFields: each field of a tree is in its message, or is known to be for the agent alone.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		value any
		names []string
	}{
		{Tree{}, []string{
			"Held", "Lease", // treeMessage
			"Started", "Ended", "Dumping", "LogLost", "OutputLost", "Source", // reports
			"Signals", "StartNow", "DumpStacks", "Kill", // orders
		}},
		{Worker{}, []string{
			"Path", "Args", "Env", "Dir", "Stdin", "Stdout", "Stderr", "StartAt", // workerMessage
			"LastOutput", "Line", // reports
		}},
		{Output{}, []string{"Log", "Tag"}},
		{Binding{}, nil},
		{Dump{}, nil},
		{Result{}, []string{"Err", "Unread"}}, // endMessage
	} {
		typ := reflect.TypeOf(c.value)
		for i := range typ.NumField() {
			f := typ.Field(i)
			if apart := slices.Contains(c.names, f.Name); apart != (f.Tag.Get("json") == "-") {
				t.Errorf("field %s of %v is in its message: %t", f.Name, typ, apart)
			}
		}
	}
}

// TestFailures: errors remain what they are for errors.Is and errors.As.
func TestFailures(t *testing.T) {
	survivors := multierror.Append(ErrNotRead,
		&SurvivorError{Process: Process{PID: 5, Name: "x"}},
		&SurvivorError{Process: Process{PID: 6, Name: "y"}})
	for _, err := range []error{
		nil, ErrLeaseOver, ErrLogBlocked, ErrNotRead, syscall.ENOSPC,
		fmt.Errorf("cannot start: %w", syscall.ENOENT), &OutputError{Err: syscall.EIO},
		&OutputError{Err: ErrNotRead}, survivors, errors.New("\xff"),
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
		_, isOutput := errors.AsType[*OutputError](err)
		if _, is := errors.AsType[*OutputError](got); is != isOutput {
			t.Errorf("%v: OutputError %t", err, is)
		}
		all, _ := errors.AsType[*multierror.Error](got)
		if err == error(survivors) && (all == nil || len(all.Errors) != 2) {
			t.Errorf("survivors become %+v", got)
		}
	}
}
