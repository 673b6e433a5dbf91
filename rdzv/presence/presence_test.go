package presence

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestGoodbyeIsNotALoss(t *testing.T) {
	registry, address := serve(t, "1", DefaultTimeout)
	wantEmpty(t, registry)
	conn := connect(t, DefaultTimeout, to(address))
	a, b := open(t, conn, "a"), open(t, conn, "b")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if registry.Empty(ended) == nil {
		t.Error("the registry is empty with two agents connected")
	}
	a.Leave(within(t))
	if id := <-registry.left; id != "a" { // when Leave returns
		t.Errorf("agent %q has left, want a", id)
	}
	a.Leave(within(t)) // has no effect
	b.Abandon()
	wantLost(t, registry, "b") // not a, which left before
	if len(registry.left) > 0 {
		t.Error("another agent has left")
	}
	wantEmpty(t, registry)
}

func TestLostAgentIsRefused(t *testing.T) {
	registry, address := serve(t, "1", DefaultTimeout)
	conn := connect(t, DefaultTimeout, to(address))
	open(t, conn, "a").Abandon()
	wantLost(t, registry, "a")
	if _, err := Open(within(t), conn, "a", nil); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a lost agent reconnected: %v", err)
	}
}

func TestCheckID(t *testing.T) {
	for id, good := range map[string]bool{
		"a": true, "node1.example-3_7": true, strings.Repeat("x", 64): true, "0": true,
		"": false, strings.Repeat("x", 65): false, "a/b": false, "a b": false,
		"ü": false, "a\x00": false, "a\n": false,
	} {
		if err := CheckID(id); (err == nil) != good {
			t.Errorf("CheckID(%q) = %v", id, err)
		}
	}
	// The server checks the id too.
	registry, address := serve(t, "1", DefaultTimeout)
	stream, err := connect(t, DefaultTimeout, to(address)).NewStream(within(t), &streamDesc, method)
	if err != nil {
		t.Fatal(err)
	}
	stream.SendMsg(wrapperspb.String(strings.Repeat("x", 1<<20)))
	err = stream.RecvMsg(new(wrapperspb.StringValue))
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("an id of 1 MB: %v, want InvalidArgument", err)
	}
	wantEmpty(t, registry)
}

func TestCloseReportsNoLoss(t *testing.T) {
	for range 20 {
		registry, address := serve(t, "1", DefaultTimeout)
		a := open(t, connect(t, DefaultTimeout, to(address)), "a")
		registry.Close()
		registry.Close()
		a.Abandon()
		wantEmpty(t, registry)
		if len(registry.lost) > 0 {
			t.Fatalf("agent %+v was reported lost", <-registry.lost)
		}
	}
}

// A new stream of an agent replaces the old one, whose end then has no effect: only one end may
// have seen a connection reset.
func TestNewStreamReplacesOldOne(t *testing.T) {
	registry, address := serve(t, "1", DefaultTimeout)
	conn := connect(t, DefaultTimeout, to(address))
	first := open(t, conn, "a")
	second := open(t, conn, "a")
	first.Abandon()
	open(t, conn, "b").Abandon()
	wantLost(t, registry, "b") // its grace period began after that of the first stream of a
	second.Leave(within(t))
	wantEmpty(t, registry)
}

func TestOpenEndsWithItsContext(t *testing.T) {
	why := errors.New("cancelled by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	dial := func(ctx context.Context) (net.Conn, error) {
		cancel(why)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if _, err := Open(ctx, connect(t, DefaultTimeout, dial), "a", nil); err != why {
		t.Errorf("Open: %v, want %v", err, why)
	}
}

func TestManyAgents(t *testing.T) {
	registry, address := serve(t, "1", DefaultTimeout)
	conn := connect(t, DefaultTimeout, to(address))
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			a, err := Open(within(t), conn, fmt.Sprint(i), func() {})
			switch {
			case err != nil:
				t.Errorf("agent %d: %v", i, err)
			case i%2 == 0:
				a.Leave(within(t))
			default:
				a.Abandon()
			}
		})
	}
	all.Wait()
	lost := map[string]bool{}
	for range 50 {
		lost[(<-registry.lost).id] = true
	}
	wantEmpty(t, registry)
	for id := range lost {
		if len(lost) != 50 || strings.ContainsAny(id[len(id)-1:], "02468") {
			t.Errorf("%d agents lost, among them %q; want 50, all odd", len(lost), id)
		}
	}
}
