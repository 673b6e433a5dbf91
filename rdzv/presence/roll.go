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
	ctx        context.Context // ends with Close
	cancel     context.CancelFunc

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
	r := &Roll{
		generation: generation,
		lost:       make(chan string),
		here:       map[string]int{},
		gone:       map[string]bool{},
		empty:      make(chan struct{}),
	}
	close(r.empty)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
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
func (r *Roll) Close() { r.cancel() }

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
	var last wrapperspb.StringValue // what came before the stream's end
	err := stream.SendMsg(wrapperspb.String(r.generation))
	for err == nil {
		err = stream.RecvMsg(&last)
	}
	if last.Value == goodbye {
		r.strike(id, number, false)
	} else {
		r.broke(id, number)
	}
	return nil
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

// strike takes the agent off the roll unless another stream of it has come since,
// and tells whether it did. An agent that was lost may not come back.
func (r *Roll) strike(id string, number int, lost bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.here[id] != number {
		return false
	}
	delete(r.here, id)
	if lost {
		r.gone[id] = true
	}
	if len(r.here) == 0 {
		close(r.empty)
	}
	return true
}

// broke waits for the agent to come back, and reports it lost if it does not.
func (r *Roll) broke(id string, number int) {
	back := time.NewTimer(redial)
	defer back.Stop()
	select {
	case <-back.C:
	case <-r.ctx.Done():
	}
	if !r.strike(id, number, true) || r.ctx.Err() != nil {
		return
	}
	select {
	case r.lost <- id:
	case <-r.ctx.Done():
	}
}
