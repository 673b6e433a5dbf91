package presence

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Attendance is the agent's side: this agent is here, until Leave.
type Attendance struct {
	id   string
	conn *grpc.ClientConn

	ctx    context.Context // ends with Leave's end; it carries the streams
	cancel context.CancelFunc
	lost   chan struct{}
	wg     sync.WaitGroup

	mu         sync.Mutex
	stream     grpc.ClientStream
	generation string
	leaving    bool
}

// Attend says to the store at the other end of conn that the agent is here, and
// returns when it was answered. ctx bounds only that.
func Attend(ctx context.Context, conn *grpc.ClientConn, id string) (*Attendance, error) {
	a := &Attendance{id: id, conn: conn, lost: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	if err := a.open(ctx, grpc.WaitForReady(true)); err != nil {
		a.cancel()
		return nil, err
	}
	a.wg.Go(a.watch)
	return a, nil
}

// Lost is closed when the store is gone: the stream broke and could not be
// opened again at once, or another store answered.
func (a *Attendance) Lost() <-chan struct{} { return a.lost }

// Left is closed when Leave has ended the attendance.
func (a *Attendance) Left() <-chan struct{} { return a.ctx.Done() }

// Leave says goodbye and returns when the server has heard it, or ctx ends.
func (a *Attendance) Leave(ctx context.Context) {
	a.mu.Lock()
	a.leaving = true
	stream := a.stream
	a.mu.Unlock()
	stop := context.AfterFunc(ctx, a.cancel)
	defer stop()
	if stream.SendMsg(wrapperspb.String(goodbye)) != nil || stream.CloseSend() != nil {
		a.cancel()
	}
	a.wg.Wait()
	a.cancel()
}

// open makes the stream and waits for its answer. The stream lives as long as
// the attendance, the wait for the answer only as long as ctx.
func (a *Attendance) open(ctx context.Context, opts ...grpc.CallOption) error {
	streamCtx, cancel := context.WithCancel(a.ctx)
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	stream, generation, err := hello(streamCtx, a.conn, a.id, opts)
	if err != nil {
		cancel()
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.generation != "" && a.generation != generation {
		cancel()
		return fmt.Errorf("another store answers (generation %s, not %s)", generation, a.generation)
	}
	a.stream, a.generation = stream, generation
	return nil
}

func hello(ctx context.Context, conn *grpc.ClientConn, id string, opts []grpc.CallOption) (grpc.ClientStream, string, error) {
	stream, err := conn.NewStream(ctx, &streamDesc, method, opts...)
	if err != nil {
		return nil, "", err
	}
	if err := stream.SendMsg(wrapperspb.String(id)); err != nil {
		return nil, "", err
	}
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
		var m wrapperspb.StringValue
		for stream.RecvMsg(&m) == nil {
		}
		if a.ended() {
			return
		}
		if !a.reopen() {
			if !a.ended() {
				close(a.lost)
			}
			return
		}
	}
}

func (a *Attendance) ended() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.leaving || a.ctx.Err() != nil
}

// reopen tries once, for as long as the server waits: later it would be refused.
func (a *Attendance) reopen() bool {
	ctx, cancel := context.WithTimeout(a.ctx, redial+10*time.Millisecond)
	defer cancel()
	return a.open(ctx) == nil
}
