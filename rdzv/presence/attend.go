package presence

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Attendance is the agent's side: this agent is here, until Leave or Abandon.
type Attendance struct {
	id   string
	conn *grpc.ClientConn

	ctx    context.Context // carries the streams; ends with the attendance
	cancel context.CancelFunc
	lost   chan struct{}
	wg     sync.WaitGroup

	mu         sync.Mutex
	stream     grpc.ClientStream
	generation string
	leaving    bool
}

// Attend says to the store at the other end of conn that the agent is here, and
// returns when it was answered. It waits for a first connection as long as ctx
// allows; one that breaks before the answer is made again at once or not at all.
// ctx bounds only the call.
func Attend(ctx context.Context, conn *grpc.ClientConn, id string) (*Attendance, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	a := &Attendance{id: id, conn: conn, lost: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	err := a.open(ctx, grpc.WaitForReady(true))
	if status.Code(err) == codes.Unavailable {
		err = a.reopen(ctx)
	}
	if err != nil {
		a.cancel()
		return nil, err
	}
	a.wg.Go(a.watch)
	return a, nil
}

// Lost is closed when the store is gone: the stream broke and could not be
// opened again at once, or another store answered.
func (a *Attendance) Lost() <-chan struct{} { return a.lost }

// Left is closed when the attendance has ended by Leave or Abandon.
func (a *Attendance) Left() <-chan struct{} { return a.ctx.Done() }

// Leave says goodbye and returns when the server has heard it, or ctx ends.
func (a *Attendance) Leave(ctx context.Context) {
	stop := context.AfterFunc(ctx, a.cancel)
	defer stop()
	if !farewell(a.leave()) {
		a.cancel()
	}
	a.wg.Wait()
	a.cancel()
}

// Abandon ends the attendance without a goodbye: to the server the agent is lost.
func (a *Attendance) Abandon() {
	a.leave()
	a.cancel()
	a.wg.Wait()
}

// leave makes the end of the stream one that is wanted.
func (a *Attendance) leave() grpc.ClientStream {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leaving = true
	return a.stream
}

func farewell(stream grpc.ClientStream) bool {
	return stream.SendMsg(wrapperspb.String(goodbye)) == nil && stream.CloseSend() == nil
}

// open makes the stream and waits for its answer. The stream lives as long as
// the attendance, the wait for the answer only as long as ctx.
func (a *Attendance) open(ctx context.Context, opts ...grpc.CallOption) error {
	streamCtx, cancel := context.WithCancel(a.ctx)
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	stream, generation, err := hello(streamCtx, a.conn, a.id, opts)
	if err == nil {
		err = a.adopt(stream, generation)
	}
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return err
}

// adopt takes the stream if the store that answered is the one that did before.
// Another one is told goodbye: its job loses nobody.
func (a *Attendance) adopt(stream grpc.ClientStream, generation string) error {
	a.mu.Lock()
	first := cmp.Or(a.generation, generation)
	if first == generation {
		a.stream, a.generation = stream, generation
	}
	a.mu.Unlock()
	if first == generation {
		return nil
	}
	if farewell(stream) {
		stream.RecvMsg(new(wrapperspb.StringValue)) // its end, or that of ctx
	}
	return fmt.Errorf("another store answers (generation %s, not %s)", generation, first)
}

func hello(ctx context.Context, conn *grpc.ClientConn, id string, opts []grpc.CallOption) (grpc.ClientStream, string, error) {
	stream, err := conn.NewStream(ctx, &streamDesc, method, opts...)
	if err != nil {
		return nil, "", err
	}
	// An error of SendMsg is only that the stream has ended; RecvMsg says why.
	stream.SendMsg(wrapperspb.String(id))
	var answer wrapperspb.StringValue
	if err := stream.RecvMsg(&answer); err != nil {
		return nil, "", err
	}
	return stream, answer.Value, nil
}

// watch waits for the stream to break, and opens it again as long as that works.
func (a *Attendance) watch() {
	for {
		a.mu.Lock()
		stream := a.stream
		a.mu.Unlock()
		for stream.RecvMsg(new(wrapperspb.StringValue)) == nil {
		}
		if !a.ended() && a.reopen(a.ctx) == nil {
			continue
		}
		if !a.ended() {
			close(a.lost)
		}
		return
	}
}

func (a *Attendance) ended() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leaving || a.ctx.Err() != nil
}

// reopen tries for as long as the server waits: later it would be refused. It
// gives up at once when no connection can be made, which is what the end of the
// store's process looks like.
func (a *Attendance) reopen(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, redial+10*time.Millisecond)
	defer cancel()
	for {
		err := a.open(ctx)
		if status.Code(err) != codes.Unavailable || a.conn.GetState() == connectivity.TransientFailure {
			return err
		}
	}
}
