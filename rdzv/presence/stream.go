package presence

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"rdzv/internal/descriptor"
)

// A Stream is the agent's side: the agent is present until Leave or Abandon. It is reopened when
// its connection breaks.
type Stream struct {
	id   string
	conn *grpc.ClientConn

	ctx    context.Context // of the gRPC streams; ends with Leave or Abandon, or when they are lost
	cancel context.CancelFunc
	lost   func()
	wg     sync.WaitGroup

	generation string // of the store; used by Open, then by watch

	mu      sync.Mutex
	current grpc.ClientStream
	leaving bool

	sending sync.Mutex    // gRPC allows one at a time
	emptied chan struct{} // delivers when the answer to LeaveEmpty has come
	renewed atomic.Pointer[func(sent time.Duration)]
}

// Open announces the agent to the store at the other end of conn and returns when the store has
// answered. It waits for a first connection until ctx ends; one that breaks before the answer is
// reopened at once or not at all. ctx bounds only the call. The error is that of CheckID, the
// cause of ctx, or a gRPC status: FailedPrecondition for an agent that was reported lost.
//
// lost is called once if the store is lost: the stream broke and could not be reopened at once, or
// another store answered. Leave and Abandon wait for it.
func Open(
	ctx context.Context, conn *grpc.ClientConn, id string, lost func(),
) (*Stream, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	s := &Stream{id: id, conn: conn, lost: lost, emptied: make(chan struct{}, 1)}
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

// Leave sends a goodbye and returns when the server has received it, or ctx ends.
func (s *Stream) Leave(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	stream := s.markLeaving()
	s.sending.Lock()
	said := sendGoodbye(stream)
	s.sending.Unlock()
	if !said {
		s.cancel()
	}
	s.wg.Wait()
	s.cancel()
}

// LeaveEmpty makes the server report the agent as lost, and that none of its processes runs. It
// returns when the server has received that, or ctx ends.
func (s *Stream) LeaveEmpty(ctx context.Context) {
	s.send(empty)
	select {
	case <-s.emptied:
	case <-s.ctx.Done():
	case <-ctx.Done():
	}
	s.Abandon()
}

// Hold returns a duplicate of the socket of the stream's connection, and lets the server know that
// each process which starts others for this agent has one too: the end of the connection then
// proves that none of these is left. From then on it must be true as long as this process lives.
// It is nil, and the server does not know, if there is no such socket.
func (s *Stream) Hold() (*os.File, error) {
	s.mu.Lock()
	stream := s.current
	s.mu.Unlock()
	c := connOf(stream.Context())
	if c == nil {
		return nil, nil
	}
	socket, ok := below(c.Conn).(syscall.Conn)
	if !ok {
		return nil, nil
	}
	file, err := descriptor.Duplicate(socket)
	if err != nil {
		return nil, fmt.Errorf("cannot duplicate the socket of the connection to the store: %w", err)
	}
	s.sendOn(stream, held)
	return file, nil
}

// Abandon ends the stream without a goodbye: the server reports the agent as lost.
func (s *Stream) Abandon() {
	s.markLeaving()
	s.cancel()
	s.wg.Wait()
}

// Renew makes the agent send a message at once and then each time that the interval has passed, and
// calls renewed with the time of now when each one that was answered was sent: the server does not
// consider the agent lost until its peer timeout has passed since then. renewed must return soon.
// Only the first call of Renew has an effect.
func (s *Stream) Renew(
	interval time.Duration, now func() time.Duration, renewed func(sent time.Duration),
) {
	if !s.renewed.CompareAndSwap(nil, &renewed) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return
	}
	s.wg.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			s.send(strconv.FormatInt(int64(now()), 10))
			select {
			case <-tick.C:
			case <-s.ctx.Done():
				return
			}
		}
	})
}

// send sends a message on the current stream. If that breaks, watch finds it out.
func (s *Stream) send(text string) {
	s.mu.Lock()
	stream := s.current
	s.mu.Unlock()
	s.sendOn(stream, text)
}

func (s *Stream) sendOn(stream grpc.ClientStream, text string) {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.mu.Lock()
	leaving := s.leaving
	s.mu.Unlock()
	if !leaving {
		stream.SendMsg(wrapperspb.String(text))
	}
}

// receive handles the answer to a message.
func (s *Stream) receive(text string) {
	if text == empty {
		s.emptied <- struct{}{} // sent once
	}
	sent, err := strconv.ParseInt(text, 10, 64)
	if renewed := s.renewed.Load(); err == nil && renewed != nil {
		(*renewed)(time.Duration(sent))
	}
}

// markLeaving records that the stream is about to be ended, and returns it.
func (s *Stream) markLeaving() grpc.ClientStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
	return s.current
}

func sendGoodbye(stream grpc.ClientStream) bool {
	return stream.SendMsg(wrapperspb.String(goodbye)) == nil && stream.CloseSend() == nil
}

// open opens a gRPC stream and waits for the answer. The stream is bound to s.ctx, the wait to ctx.
func (s *Stream) open(ctx context.Context, opts ...grpc.CallOption) error {
	streamCtx, cancel := context.WithCancel(s.ctx)
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	err := s.handshake(streamCtx, opts)
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return err
}

// handshake opens a gRPC stream, sends the id and waits for the server's generation.
func (s *Stream) handshake(ctx context.Context, opts []grpc.CallOption) error {
	stream, err := s.conn.NewStream(ctx, &streamDesc, method, opts...)
	if err != nil {
		return err
	}
	// An error of SendMsg means only that the stream has ended; RecvMsg returns the reason.
	stream.SendMsg(wrapperspb.String(s.id))
	var answer wrapperspb.StringValue
	if err := stream.RecvMsg(&answer); err != nil {
		return err
	}
	return s.adopt(stream, answer.Value)
}

// adopt makes stream the current one if the same store answered as before. It sends a goodbye to
// any other store, whose job must not lose an agent.
func (s *Stream) adopt(stream grpc.ClientStream, generation string) error {
	if s.generation != "" && s.generation != generation {
		if sendGoodbye(stream) {
			stream.RecvMsg(new(wrapperspb.StringValue)) // until the server or ctx ends it
		}
		return fmt.Errorf("another store answered (generation %s, not %s)", generation, s.generation)
	}
	s.generation = generation
	s.mu.Lock()
	s.current = stream
	s.mu.Unlock()
	return nil
}

// watch waits for the stream to break and reopens it, until that fails or the agent leaves.
func (s *Stream) watch() {
	defer s.cancel() // of Renew
	for {
		s.mu.Lock()
		stream := s.current
		s.mu.Unlock()
		var answer wrapperspb.StringValue
		for stream.RecvMsg(&answer) == nil {
			s.receive(answer.Value)
		}
		if s.ended() || s.reconnect(s.ctx) != nil {
			break
		}
	}
	if !s.ended() {
		s.lost()
	}
}

func (s *Stream) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving || s.ctx.Err() != nil
}

// reconnect tries to reopen the stream as long as the server waits; later it would be refused. It
// fails at once if no connection can be made, as after the end of the store's process.
func (s *Stream) reconnect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reconnectGrace+10*time.Millisecond)
	defer cancel()
	for {
		err := s.open(ctx)
		failed := s.conn.GetState() == connectivity.TransientFailure
		if failed || status.Code(err) != codes.Unavailable {
			return err
		}
	}
}
