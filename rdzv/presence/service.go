package presence

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"rdzv/rdzv/internal/protocol"
)

// DefaultTimeout is the default peer timeout: how long a peer may be silent before it counts as
// lost.
const DefaultTimeout = 10 * time.Second

// MinTimeout is the shortest peer timeout that distinguishes a lost peer from a slow one: a gRPC
// server sends at most one ping per second, and three must be missed.
const MinTimeout = 3 * time.Second

const (
	serviceName = "rdzv.v1.Presence"
	method      = "/" + serviceName + "/Connect"
	goodbye     = "bye"
	held        = "held"  // see Stream.Hold
	empty       = "empty" // see Stream.LeaveEmpty
)

// The messages are protobuf's StringValue, because etcd's gRPC server encodes only protobuf
// messages: the agent sends its id, the server answers with its generation, and the agent ends
// with goodbye. In between it sends when it has sent the message, held or empty, which are
// answered by the same.
var streamDesc = grpc.StreamDesc{StreamName: "Connect", ServerStreams: true, ClientStreams: true}

// CheckID returns an error unless id can name an agent, see [protocol.CheckID].
func CheckID(id string) error { return protocol.CheckID(id) }

// Window is the flow-control window of both ends in bytes, per stream and per connection. A fixed
// window keeps gRPC from estimating the bandwidth with a ping every few messages, which was a fifth
// of the bytes of a job that only joins and leaves. No message here fills the window.
const Window = 1 << 20

// Buffer is the size of a connection's read and write buffers at both ends, in bytes. gRPC's
// default is 32 kB each; messages here have a few hundred bytes, and a store of 4096 agents has
// 4096 pairs of buffers.
const Buffer = 4 << 10

// maxHeaders limits the headers of a request in bytes. gRPC's default is 16 MB.
const maxHeaders = 16 << 10

// ServerOptions make a gRPC server ping its clients often enough for connections of [LimitSilence]
// with the given timeout on both ends. The server itself never disconnects a silent client: its
// timer would also count the time in which the process was stopped.
func ServerOptions(timeout time.Duration) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time:    max(timeout/5, time.Second),
			Timeout: 24 * time.Hour,
		}),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.InitialWindowSize(Window),
		grpc.InitialConnWindowSize(Window),
		grpc.ReadBufferSize(Buffer),
		grpc.WriteBufferSize(Buffer),
	}
}
