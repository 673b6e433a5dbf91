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

// reconnectGrace is how long an agent whose stream broke has to come back before it
// counts as dead. A dead process comes back never, so this delays the verdict on
// it; a connection that a firewall reset comes back in one round trip.
const reconnectGrace = 50 * time.Millisecond

// Registry is the server's side: who is here, and who went without a goodbye.
type Registry struct {
	generation string
	lost       chan string
	ctx        context.Context // ends with Close
	cancel     context.CancelFunc

	mu      sync.Mutex
	streams map[string]int  // agent's id -> number of its stream
	refused map[string]bool // ids that were reported lost; they may not come back
	serial  int
	empty   chan struct{} // closed when nobody is here
}

// NewRegistry returns an empty registry. The generation is told to every agent that
// attends: a store that was replaced by another one at the same address has
// another generation.
func NewRegistry(generation string) *Registry {
	r := &Registry{
		generation: generation,
		lost:       make(chan string),
		streams:    map[string]int{},
		refused:    map[string]bool{},
		empty:      make(chan struct{}),
	}
	close(r.empty)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Register adds the service to a gRPC server, before it serves.
func (r *Registry) Register(s *grpc.Server) {
	stream := streamDesc
	stream.Handler = func(_ any, s grpc.ServerStream) error { return r.serve(s) }
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{stream},
	}, r)
}

// Lost gives the id of each agent that went without a goodbye, once.
func (r *Registry) Lost() <-chan string { return r.lost }

// Empty waits until nobody is here, or ctx ends.
func (r *Registry) Empty(ctx context.Context) error {
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
func (r *Registry) Close() { r.cancel() }

// serve is one stream's life.
func (r *Registry) serve(stream grpc.ServerStream) error {
	var hello wrapperspb.StringValue
	if err := stream.RecvMsg(&hello); err != nil {
		return err
	}
	id := hello.Value
	if err := CheckID(id); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	number, ok := r.add(id)
	if !ok {
		return status.Errorf(codes.FailedPrecondition, "agent %q was lost before", id)
	}
	var last wrapperspb.StringValue // what came before the stream's end
	err := stream.SendMsg(wrapperspb.String(r.generation))
	for err == nil {
		err = stream.RecvMsg(&last)
	}
	if last.Value == goodbye {
		r.remove(id, number, false)
	} else {
		r.awaitReconnect(id, number)
	}
	return nil
}

func (r *Registry) add(id string) (number int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused[id] {
		return 0, false
	}
	if len(r.streams) == 0 {
		r.empty = make(chan struct{})
	}
	r.serial++
	r.streams[id] = r.serial
	return r.serial, true
}

// remove takes the agent off the registry unless another stream of it has come since,
// and tells whether it did. An agent that was lost may not come back.
func (r *Registry) remove(id string, number int, lost bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streams[id] != number {
		return false
	}
	delete(r.streams, id)
	if lost {
		r.refused[id] = true
	}
	if len(r.streams) == 0 {
		close(r.empty)
	}
	return true
}

// awaitReconnect waits for the agent to come back, and reports it lost if it does not.
func (r *Registry) awaitReconnect(id string, number int) {
	back := time.NewTimer(reconnectGrace)
	defer back.Stop()
	select {
	case <-back.C:
	case <-r.ctx.Done():
	}
	if !r.remove(id, number, true) || r.ctx.Err() != nil {
		return
	}
	select {
	case r.lost <- id:
	case <-r.ctx.Done():
	}
}
