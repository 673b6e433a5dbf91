package presence

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// serve runs a roll's server on loopback and returns its address.
func serve(t *testing.T, generation string, timeout time.Duration) (*Roll, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	roll := NewRoll(generation)
	server := grpc.NewServer(ServerOptions(timeout)...)
	roll.Register(server)
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(patientListener{l, timeout}) })
	t.Cleanup(func() { roll.Close(); server.Stop(); serving.Wait() })
	return roll, l.Addr().String()
}

type patientListener struct {
	net.Listener
	timeout time.Duration
}

func (l patientListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Patient(conn, l.timeout), nil
}

// connect returns a connection to what dial dials.
func connect(t *testing.T, timeout time.Duration, dial func(context.Context) (net.Conn, error)) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///store",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := dial(ctx)
			if err != nil {
				return nil, err
			}
			return Patient(conn, timeout), nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func to(address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) }
}

func attend(t *testing.T, conn *grpc.ClientConn, id string) *Attendance {
	t.Helper()
	a, err := Attend(within(t), conn, id)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	t.Cleanup(a.Abandon)
	return a
}

func wantLost(t *testing.T, r *Roll, id string) {
	t.Helper()
	select {
	case got := <-r.Lost():
		if got != id {
			t.Errorf("%q was lost, want %q", got, id)
		}
	case <-within(t).Done():
		t.Fatalf("the loss of %q was not told", id)
	}
}

func wantEmpty(t *testing.T, r *Roll) {
	t.Helper()
	if err := r.Empty(within(t)); err != nil {
		t.Error("somebody is still here")
	}
}

func TestWhoSaysGoodbyeIsNotLost(t *testing.T) {
	roll, address := serve(t, "1", DefaultTimeout)
	wantEmpty(t, roll)
	conn := connect(t, DefaultTimeout, to(address))
	a, b := attend(t, conn, "a"), attend(t, conn, "b")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if roll.Empty(gone) == nil {
		t.Error("nobody is here")
	}
	a.Leave(within(t))
	a.Leave(within(t)) // once more does nothing
	b.Abandon()
	wantLost(t, roll, "b") // and not a, which left before
	wantEmpty(t, roll)
}

func TestWhoWasLostDoesNotComeBack(t *testing.T) {
	roll, address := serve(t, "1", DefaultTimeout)
	conn := connect(t, DefaultTimeout, to(address))
	attend(t, conn, "a").Abandon()
	wantLost(t, roll, "a")
	if _, err := Attend(within(t), conn, "a"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("came back: %v", err)
	}
}

func TestIDs(t *testing.T) {
	for id, good := range map[string]bool{
		"a": true, "node1.example-3_7": true, strings.Repeat("x", 64): true, "0": true,
		"": false, strings.Repeat("x", 65): false, "a/b": false, "a b": false, "ü": false, "a\x00": false, "a\n": false,
	} {
		if err := CheckID(id); (err == nil) != good {
			t.Errorf("%q: %v", id, err)
		}
	}
	// The server does not rely on its clients for that.
	roll, address := serve(t, "1", DefaultTimeout)
	stream, err := connect(t, DefaultTimeout, to(address)).NewStream(within(t), &streamDesc, method)
	if err != nil {
		t.Fatal(err)
	}
	stream.SendMsg(wrapperspb.String(strings.Repeat("x", 1<<20)))
	if err := stream.RecvMsg(new(wrapperspb.StringValue)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("an id of a megabyte: %v", err)
	}
	wantEmpty(t, roll)
}

func TestAStoreThatClosesHasLostNobody(t *testing.T) {
	for range 20 {
		roll, address := serve(t, "1", DefaultTimeout)
		a := attend(t, connect(t, DefaultTimeout, to(address)), "a")
		lost := make(chan string, 1)
		stop := make(chan struct{})
		var hearing sync.WaitGroup
		hearing.Go(func() {
			select {
			case id := <-roll.Lost():
				lost <- id
			case <-stop:
			}
		})
		roll.Close()
		roll.Close()
		a.Abandon()
		wantEmpty(t, roll)
		close(stop)
		hearing.Wait()
		if len(lost) > 0 {
			t.Fatalf("lost %q", <-lost)
		}
	}
}

// A new stream of the same agent replaces the old one, whose end then means
// nothing: a reset may be seen at one end only.
func TestTheLastStreamCounts(t *testing.T) {
	roll, address := serve(t, "1", DefaultTimeout)
	conn := connect(t, DefaultTimeout, to(address))
	first := attend(t, conn, "a")
	second := attend(t, conn, "a")
	first.Abandon()
	attend(t, conn, "b").Abandon()
	wantLost(t, roll, "b") // its grace began after the first stream's
	second.Leave(within(t))
	wantEmpty(t, roll)
}

// wire is a connection that a test can freeze: it stays open and passes nothing
// on, as when the host at the other end has been unplugged.
type wire struct {
	address string
	frozen  chan struct{}
}

func (w *wire) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	far, err := to(w.address)(ctx)
	if err != nil {
		return nil, err
	}
	go w.pass(theirs, far)
	go w.pass(far, theirs)
	return ours, nil
}

// pass passes on what comes until it ends or is frozen; then what it has is kept
// open, as it stands.
func (w *wire) pass(to, from net.Conn) {
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if w.isFrozen() {
			return
		}
		if n > 0 {
			to.Write(b[:n])
		}
		if err != nil {
			to.Close()
			return
		}
	}
}

func (w *wire) isFrozen() bool {
	select {
	case <-w.frozen:
		return true
	default:
		return false
	}
}

func TestAFrozenPeerIsNoticedAtBothEnds(t *testing.T) {
	t.Parallel()
	const timeout = MinTimeout
	roll, address := serve(t, "1", timeout)
	w := &wire{address: address, frozen: make(chan struct{})}
	frozen := attend(t, connect(t, timeout, w.dial), "frozen")
	well := attend(t, connect(t, timeout, to(address)), "well")
	began := time.Now()
	close(w.frozen)
	wantLost(t, roll, "frozen")
	select {
	case <-frozen.Lost():
	case <-within(t).Done():
		t.Fatal("the agent did not notice")
	}
	// Another ping may come after it froze, none may have come for a while before it.
	if took := time.Since(began); took < timeout/2 {
		t.Errorf("noticed after %v, want about %v", took, timeout)
	}
	select {
	case id := <-roll.Lost():
		t.Errorf("%q was lost, too", id)
	case <-well.Lost():
		t.Error("an agent that is well lost its store")
	case <-time.After(timeout): // pings alone keep it for longer than the timeout
	}
	well.Leave(within(t))
}

// On a machine that is very busy, coming back may take longer than the grace for
// it; then the agent is lost, as it should be, and the test tries again.
func TestAConnectionThatBreaksIsMadeAgain(t *testing.T) {
	for range 10 {
		if survives(t, 5) {
			return
		}
	}
	t.Error("no agent survived its connection's break")
}

// survives tells whether an agent comes back each time that its connection breaks.
func survives(t *testing.T, breaks int) bool {
	roll, address := serve(t, "1", DefaultTimeout)
	wires := make(chan net.Conn, 10)
	a := attend(t, connect(t, DefaultTimeout, func(ctx context.Context) (net.Conn, error) {
		conn, err := to(address)(ctx)
		if err == nil {
			wires <- conn
		}
		return conn, err
	}), "a")
	for i := range breaks {
		(<-wires).Close()
		if !comesBack(t, roll, a, i+2) {
			return false
		}
	}
	a.Leave(within(t))
	wantEmpty(t, roll)
	select {
	case id := <-roll.Lost():
		t.Errorf("%q was lost, and then left", id)
	default:
	}
	return true
}

// comesBack waits until n streams have come in, or the agent is lost.
func comesBack(t *testing.T, r *Roll, a *Attendance, n int) bool {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := within(t); ; {
		r.mu.Lock()
		serial := r.serial
		r.mu.Unlock()
		if serial >= n {
			return true
		}
		select {
		case <-tick.C:
		case <-a.Lost():
			return false
		case <-r.Lost():
			return false
		case <-ctx.Done():
			t.Fatalf("%d streams came in, not %d, and nobody was lost", serial, n)
		}
	}
}

func TestAnotherStoreIsNotTakenForTheFirst(t *testing.T) {
	_, first := serve(t, "1", DefaultTimeout)
	other, second := serve(t, "2", DefaultTimeout)
	var mu sync.Mutex
	address, wires := first, []net.Conn(nil)
	a := attend(t, connect(t, DefaultTimeout, func(ctx context.Context) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		conn, err := to(address)(ctx)
		wires = append(wires, conn)
		return conn, err
	}), "a")
	mu.Lock()
	address = second
	wires[0].Close()
	mu.Unlock()
	select {
	case <-a.Lost():
	case <-within(t).Done():
		t.Fatal("the other store was taken for the first")
	}
	attend(t, connect(t, DefaultTimeout, to(second)), "b").Abandon()
	wantLost(t, other, "b") // and not a, which was never its own
}

func TestAttendEndsWithItsContext(t *testing.T) {
	why := errors.New("asked to")
	ctx, cancel := context.WithCancelCause(t.Context())
	dial := func(ctx context.Context) (net.Conn, error) {
		cancel(why)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if _, err := Attend(ctx, connect(t, DefaultTimeout, dial), "a"); err != why {
		t.Errorf("Attend: %v", err)
	}
}

func TestManyComeAndGo(t *testing.T) {
	roll, address := serve(t, "1", DefaultTimeout)
	conn := connect(t, DefaultTimeout, to(address))
	lost := map[string]bool{}
	var heard sync.WaitGroup
	heard.Go(func() {
		for range 50 {
			lost[<-roll.Lost()] = true
		}
	})
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			a, err := Attend(within(t), conn, fmt.Sprint(i))
			switch {
			case err != nil:
				t.Errorf("%d: %v", i, err)
			case i%2 == 0:
				a.Leave(within(t))
			default:
				a.Abandon()
			}
		})
	}
	all.Wait()
	heard.Wait()
	wantEmpty(t, roll)
	for id := range lost {
		if len(lost) != 50 || strings.ContainsAny(id[len(id)-1:], "02468") {
			t.Errorf("%d lost, %q among them", len(lost), id)
		}
	}
}
