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

// Stream is the agent's side: this agent is here, until Leave or Abandon.
type Stream struct {
	id   string
	conn *grpc.ClientConn

	ctx    context.Context // carries the streams; ends with the attendance
	cancel context.CancelFunc
	lost   chan struct{}
	wg     sync.WaitGroup

	mu         sync.Mutex
	current    grpc.ClientStream
	generation string
	leaving    bool
}

// Open says to the store at the other end of conn that the agent is here, and
// returns when it was answered. It waits for a first connection as long as ctx
// allows; one that breaks before the answer is made again at once or not at all.
// ctx bounds only the call.
func Open(ctx context.Context, conn *grpc.ClientConn, id string) (*Stream, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	s := &Stream{id: id, conn: conn, lost: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	err := s.open(ctx, grpc.WaitForReady(true))
	if status.Code(err) == codes.Unavailable {
		err = s.reconnect(ctx)
	}
	if err != nil {
		s.cancel()
		return nil, err
	}
	s.wg.Go(s.watch)
	return s, nil
}

// Lost is closed when the store is gone: the stream broke and could not be
// opened again at once, or another store answered.
func (s *Stream) Lost() <-chan struct{} { return s.lost }

// Done is closed when the attendance has ended by Leave or Abandon.
func (s *Stream) Done() <-chan struct{} { return s.ctx.Done() }

// Leave says goodbye and returns when the server has heard it, or ctx ends.
func (s *Stream) Leave(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	if !sendGoodbye(s.markLeaving()) {
		s.cancel()
	}
	s.wg.Wait()
	s.cancel()
}

// Abandon ends the attendance without a goodbye: to the server the agent is lost.
func (s *Stream) Abandon() {
	s.markLeaving()
	s.cancel()
	s.wg.Wait()
}

// markLeaving makes the end of the stream one that is wanted.
func (s *Stream) markLeaving() grpc.ClientStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
	return s.current
}

func sendGoodbye(stream grpc.ClientStream) bool {
	return stream.SendMsg(wrapperspb.String(goodbye)) == nil && stream.CloseSend() == nil
}

// open makes the stream and waits for its answer. The stream lives as long as
// the attendance, the wait for the answer only as long as ctx.
func (s *Stream) open(ctx context.Context, opts ...grpc.CallOption) error {
	streamCtx, cancel := context.WithCancel(s.ctx)
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	stream, generation, err := handshake(streamCtx, s.conn, s.id, opts)
	if err == nil {
		err = s.adopt(stream, generation)
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
func (s *Stream) adopt(stream grpc.ClientStream, generation string) error {
	s.mu.Lock()
	first := cmp.Or(s.generation, generation)
	if first == generation {
		s.current, s.generation = stream, generation
	}
	s.mu.Unlock()
	if first == generation {
		return nil
	}
	if sendGoodbye(stream) {
		stream.RecvMsg(new(wrapperspb.StringValue)) // its end, or that of ctx
	}
	return fmt.Errorf("another store answers (generation %s, not %s)", generation, first)
}

func handshake(ctx context.Context, conn *grpc.ClientConn, id string, opts []grpc.CallOption) (grpc.ClientStream, string, error) {
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
func (s *Stream) watch() {
	for {
		s.mu.Lock()
		stream := s.current
		s.mu.Unlock()
		for stream.RecvMsg(new(wrapperspb.StringValue)) == nil {
		}
		if !s.ended() && s.reconnect(s.ctx) == nil {
			continue
		}
		if !s.ended() {
			close(s.lost)
		}
		return
	}
}

func (s *Stream) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving || s.ctx.Err() != nil
}

// reconnect tries for as long as the server waits: later it would be refused. It
// gives up at once when no connection can be made, which is what the end of the
// store's process looks like.
func (s *Stream) reconnect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reconnectGrace+10*time.Millisecond)
	defer cancel()
	for {
		err := s.open(ctx)
		if status.Code(err) != codes.Unavailable || s.conn.GetState() == connectivity.TransientFailure {
			return err
		}
	}
}
