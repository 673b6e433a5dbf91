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

// reconnectGrace is how long an agent whose stream broke may take to reconnect before it counts as
// lost. It delays the report of a dead agent; a connection that a firewall reset is restored in one
// round trip.
const reconnectGrace = 50 * time.Millisecond

// Loss is what is known of an agent that has disconnected without a goodbye. If neither is set, it
// may still run: a reset may come from another host that has got its address.
type Loss struct {
	// Ended says that it is proved that none of its processes runs: it has said so, or all of them
	// that had its connection have closed that (see [Stream.Hold]).
	Ended bool
	// After is for how long it was not heard, if that is why it counts as lost; otherwise 0.
	After time.Duration
}

// A Registry is the server's side: which agents are connected, and which were lost.
type Registry struct {
	generation string
	ended      func(id string, loss *Loss) // see Register
	ctx        context.Context             // ends with Close
	cancel     context.CancelFunc

	mu      sync.Mutex
	streams map[string]int  // agent's id -> number of its latest stream
	refused map[string]bool // ids of lost agents, which may not reconnect
	serial  int             // number of the latest stream
	empty   chan struct{}   // closed while no agent is connected
}

// NewRegistry returns an empty registry. The generation is sent to every agent: it distinguishes a
// store from another one that has replaced it at the same address.
func NewRegistry(generation string) *Registry {
	r := &Registry{
		generation: generation,
		streams:    map[string]int{},
		refused:    map[string]bool{},
		empty:      make(chan struct{}),
	}
	close(r.empty)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Register adds the service to a gRPC server that does not serve yet. ended is called once for each
// agent that has left, with a goodbye if loss is nil. Until it returns a goodbye is not answered.
func (r *Registry) Register(s *grpc.Server, ended func(id string, loss *Loss)) {
	r.ended = ended
	stream := streamDesc
	stream.Handler = func(_ any, s grpc.ServerStream) error { return r.serve(s) }
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{stream},
	}, r)
}

// Empty waits until no agent is connected. It returns the cause if ctx ends first.
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

// Len returns how many agents are connected.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.streams)
}

// Has tells whether an agent is connected.
func (r *Registry) Has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams[id] != 0
}

// Close ends the reports: nobody learns of the streams that end from now on.
func (r *Registry) Close() { r.cancel() }

// serve handles one stream, from the agent's id to the end. Each message but the goodbye is
// answered by the same.
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
		return status.Errorf(codes.FailedPrecondition, "agent %q was reported lost", id)
	}
	var last wrapperspb.StringValue // the last message before the stream ended
	isHeld := false
	err := stream.SendMsg(wrapperspb.String(r.generation))
	for err == nil {
		if err = stream.RecvMsg(&last); err == nil && last.Value != goodbye {
			isHeld = isHeld || last.Value == held
			err = stream.SendMsg(&last)
		}
	}
	var loss *Loss
	if last.Value != goodbye {
		ended, after := endOf(stream.Context())
		loss = &Loss{last.Value == empty || isHeld && ended, after}
		r.awaitReconnect()
	}
	if r.remove(id, number, loss != nil) && r.ctx.Err() == nil {
		r.ended(id, loss)
	}
	return nil
}

// add records a new stream of an agent and returns its number. It refuses a lost agent.
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

// remove removes an agent, unless it has opened another stream since, and reports whether it did. A
// lost agent is refused from then on.
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

// awaitReconnect gives an agent whose stream broke the time to open another one.
func (r *Registry) awaitReconnect() {
	timer := time.NewTimer(reconnectGrace)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.ctx.Done():
	}
}
