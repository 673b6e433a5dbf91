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

func TestWhoSaysGoodbyeIsNotLost(t *testing.T) {
	registry, address := serve(t, "1", DefaultTimeout)
	wantEmpty(t, registry)
	conn := connect(t, DefaultTimeout, to(address))
	a, b := open(t, conn, "a"), open(t, conn, "b")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if registry.Empty(gone) == nil {
		t.Error("nobody is here")
	}
	a.Leave(within(t))
	a.Leave(within(t)) // once more does nothing
	b.Abandon()
	wantLost(t, registry, "b") // and not a, which left before
	wantEmpty(t, registry)
}

func TestWhoWasLostDoesNotComeBack(t *testing.T) {
	registry, address := serve(t, "1", DefaultTimeout)
	conn := connect(t, DefaultTimeout, to(address))
	open(t, conn, "a").Abandon()
	wantLost(t, registry, "a")
	if _, err := Open(within(t), conn, "a"); status.Code(err) != codes.FailedPrecondition {
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
	registry, address := serve(t, "1", DefaultTimeout)
	stream, err := connect(t, DefaultTimeout, to(address)).NewStream(within(t), &streamDesc, method)
	if err != nil {
		t.Fatal(err)
	}
	stream.SendMsg(wrapperspb.String(strings.Repeat("x", 1<<20)))
	if err := stream.RecvMsg(new(wrapperspb.StringValue)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("an id of a megabyte: %v", err)
	}
	wantEmpty(t, registry)
}

func TestAStoreThatClosesHasLostNobody(t *testing.T) {
	for range 20 {
		registry, address := serve(t, "1", DefaultTimeout)
		a := open(t, connect(t, DefaultTimeout, to(address)), "a")
		lost := make(chan string, 1)
		stop := make(chan struct{})
		var hearing sync.WaitGroup
		hearing.Go(func() {
			select {
			case id := <-registry.Lost():
				lost <- id
			case <-stop:
			}
		})
		registry.Close()
		registry.Close()
		a.Abandon()
		wantEmpty(t, registry)
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
	registry, address := serve(t, "1", DefaultTimeout)
	conn := connect(t, DefaultTimeout, to(address))
	first := open(t, conn, "a")
	second := open(t, conn, "a")
	first.Abandon()
	open(t, conn, "b").Abandon()
	wantLost(t, registry, "b") // its grace began after the first stream's
	second.Leave(within(t))
	wantEmpty(t, registry)
}

func TestOpenEndsWithItsContext(t *testing.T) {
	why := errors.New("asked to")
	ctx, cancel := context.WithCancelCause(t.Context())
	dial := func(ctx context.Context) (net.Conn, error) {
		cancel(why)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if _, err := Open(ctx, connect(t, DefaultTimeout, dial), "a"); err != why {
		t.Errorf("Open: %v", err)
	}
}

func TestManyComeAndGo(t *testing.T) {
	registry, address := serve(t, "1", DefaultTimeout)
	conn := connect(t, DefaultTimeout, to(address))
	lost := map[string]bool{}
	var heard sync.WaitGroup
	heard.Go(func() {
		for range 50 {
			lost[<-registry.Lost()] = true
		}
	})
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			a, err := Open(within(t), conn, fmt.Sprint(i))
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
	wantEmpty(t, registry)
	for id := range lost {
		if len(lost) != 50 || strings.ContainsAny(id[len(id)-1:], "02468") {
			t.Errorf("%d lost, %q among them", len(lost), id)
		}
	}
}
