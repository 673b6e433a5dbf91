package presence

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// DefaultTimeout is how long a peer may be silent before it counts as lost.
const DefaultTimeout = 10 * time.Second

// MinTimeout is the shortest silence that can be told from a slow peer: gRPC
// servers ping at most once a second, and three pings may go astray.
const MinTimeout = 3 * time.Second

const (
	serviceName = "rdzv.v1.Presence"
	method      = "/" + serviceName + "/Connect"
	goodbye     = "bye"
)

// The messages are protobuf's well-known StringValue, because a gRPC server of
// etcd encodes protobuf messages and nothing else: the agent sends its id, the
// server answers with its generation, the agent ends with the word goodbye.
var streamDesc = grpc.StreamDesc{StreamName: "Connect", ServerStreams: true, ClientStreams: true}

// Window is the flow control window of both ends, for a stream and a connection.
// A given one keeps gRPC from measuring the bandwidth with a ping for every few
// messages, a fifth of all bytes of a job that only meets and parts; nothing here
// is large enough to fill it.
const Window = 1 << 20

// Buffer is the size of a connection's read and write buffers at both ends, 32 kB
// each by default. Messages here have some hundred bytes, and a store of 4096
// agents has as many pairs of them.
const Buffer = 4 << 10

// ServerOptions make a gRPC server ping its clients often enough for [LimitSilence]
// connections with the given timeout on both ends. The server never gives up a
// client by itself: its own timer would count the time in which it was stopped.
func ServerOptions(timeout time.Duration) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time:    max(timeout/5, time.Second),
			Timeout: 24 * time.Hour,
		}),
		grpc.InitialWindowSize(Window),
		grpc.InitialConnWindowSize(Window),
		grpc.ReadBufferSize(Buffer),
		grpc.WriteBufferSize(Buffer),
	}
}
