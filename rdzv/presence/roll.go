package presence

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// redial is how long an agent whose stream broke has to come back before it
// counts as dead. A dead process comes back never, so this delays the verdict on
// it; a connection that a firewall reset comes back in one round trip.
const redial = 50 * time.Millisecond

// Roll is the server's side: who is here, and who went without a goodbye.
type Roll struct {
	generation string
	lost       chan string
	done       chan struct{}

	mu     sync.Mutex
	here   map[string]int  // agent's id -> number of its stream
	gone   map[string]bool // ids that were reported lost; they may not come back
	serial int
	empty  chan struct{} // closed when nobody is here
}

// NewRoll returns an empty roll. The generation is told to every agent that
// attends: a store that was replaced by another one at the same address has
// another generation.
func NewRoll(generation string) *Roll {
	empty := make(chan struct{})
	close(empty)
	return &Roll{
		generation: generation,
		lost:       make(chan string),
		done:       make(chan struct{}),
		here:       map[string]int{},
		gone:       map[string]bool{},
		empty:      empty,
	}
}

// Register adds the service to a gRPC server, before it serves.
func (r *Roll) Register(s *grpc.Server) {
	stream := streamDesc
	stream.Handler = func(_ any, s grpc.ServerStream) error { return r.attend(s) }
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{stream},
	}, r)
}

// Lost gives the id of each agent that went without a goodbye, once.
func (r *Roll) Lost() <-chan string { return r.lost }

// Empty waits until nobody is here, or ctx ends.
func (r *Roll) Empty(ctx context.Context) error {
	r.mu.Lock()
	empty := r.empty
	r.mu.Unlock()
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close stops the telling: agents whose streams break from now on are not lost.
func (r *Roll) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed() {
		close(r.done)
	}
}

// attend is one stream's life.
func (r *Roll) attend(stream grpc.ServerStream) error {
	var hello wrapperspb.StringValue
	if err := stream.RecvMsg(&hello); err != nil {
		return err
	}
	id := hello.Value
	if err := CheckID(id); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	number, ok := r.enter(id)
	if !ok {
		return status.Errorf(codes.FailedPrecondition, "agent %q was lost before", id)
	}
	if err := stream.SendMsg(wrapperspb.String(r.generation)); err == nil && saysGoodbye(stream) {
		r.leave(id, number)
		return nil
	}
	r.broke(id, number)
	return nil
}

// saysGoodbye waits for the stream's end and tells whether a goodbye came first.
func saysGoodbye(stream grpc.ServerStream) bool {
	var last wrapperspb.StringValue
	for {
		var m wrapperspb.StringValue
		if err := stream.RecvMsg(&m); err != nil {
			return last.Value == goodbye
		}
		last.Value = m.Value
	}
}

func (r *Roll) enter(id string) (number int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone[id] {
		return 0, false
	}
	if len(r.here) == 0 {
		r.empty = make(chan struct{})
	}
	r.serial++
	r.here[id] = r.serial
	return r.serial, true
}

// leave takes the agent off the roll unless another stream of it has come since,
// and tells whether it did.
func (r *Roll) leave(id string, number int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.strike(id, number)
}

func (r *Roll) strike(id string, number int) bool {
	if r.here[id] != number {
		return false
	}
	delete(r.here, id)
	if len(r.here) == 0 {
		close(r.empty)
	}
	return true
}

// bury is leave for an agent that may not come back.
func (r *Roll) bury(id string, number int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	dead := r.strike(id, number)
	if dead {
		r.gone[id] = true
	}
	return dead
}

// broke waits for the agent to come back, and reports it lost if it does not.
func (r *Roll) broke(id string, number int) {
	back := time.NewTimer(redial)
	defer back.Stop()
	select {
	case <-back.C:
	case <-r.done:
	}
	if !r.bury(id, number) || r.closed() {
		return
	}
	select {
	case r.lost <- id:
	case <-r.done:
	}
}

func (r *Roll) closed() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
