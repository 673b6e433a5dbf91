package procfs

import (
	"crypto/rand"
	"net"
	"slices"
	"testing"
	"testing/fstest"
)

func TestUnixListeners(t *testing.T) {
	const text = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 21 @x/a
0000000000000000: 00000003 00000000 00000000 0001 03 22 @x/a
0000000000000000: 00000002 00000000 00010000 0001 01 23 @y/b
0000000000000000: 00000002 00000000 00010000 0001 01 24 /x/c
0000000000000000: 00000002 00000000 00010000 0001 01 25 @x/d
0000000000000000: 00000002 00000000 zzz 0001 01 26 @x/e
0000000000000000: 00000003 00000000 00000000 0001 03 27
`
	proc := fstest.MapFS{"self/net/unix": {Data: []byte(text)}}
	got, err := UnixListeners(proc, "@x/")
	if want := []string{"@x/a", "@x/d"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("UnixListeners = %q, %v, want %q", got, err, want)
	}
	if got, err := UnixListeners(fstest.MapFS{}, "@"); err == nil {
		t.Errorf("without the file: %q and no error", got)
	}
}

func TestUnixListenersOfThisSystem(t *testing.T) {
	name := "@rdzv-test/" + rand.Text()
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got, err := UnixListeners(System, name)
	if err != nil || !slices.Equal(got, []string{name}) {
		t.Errorf("UnixListeners = %q, %v, want %q", got, err, name)
	}
}
