// Package peers measures connections between the nodes of a job. Workers of different nodes connect
// to each other directly, so that it is not enough that every node reaches the store.
//
// One agent of each node answers ([Listen]), and measures its connections to those of other nodes
// ([Client.Measure]). Both authenticate each message, so that only agents of the job get an answer,
// and no other answer is believed.
package peers

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Key encrypts and authenticates messages, each for one purpose. A secret.Key is one.
type Key interface {
	Seal(purpose string, text []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

const (
	nonceLen    = 16
	overhead    = 28 // of Key.Seal: a nonce and a tag
	requestLen  = nonceLen + overhead
	answerLen   = nonceLen + 8 + overhead // with the time, in nanoseconds since 1970
	roundTrips  = 5
	connections = 64 // that a server serves at the same time; others wait
)

// A firewall lets a connection wait for connectTime. Then the other end has more time to answer,
// because a busy host is none that workers cannot reach.
const (
	connectTime = 2 * time.Second
	totalTime   = 10 * time.Second
)

// purposes are those of requests to the agent with an ID, and of its answers. They differ for each
// agent, because another one may have the same address in a network of its own.
func purposes(id string) (request, answer string) {
	return "request of the time of " + id, "time of " + id
}

// Server answers the agents of other nodes.
type Server struct {
	id       string
	key      Key
	now      func() time.Time
	listener net.Listener
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup
}

// Listen answers requests to the agent with an ID on a free port of an address, until Close. now is
// the clock of the node.
func Listen(addr, id string, key Key, now func() time.Time) (*Server, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
	if err != nil {
		return nil, err
	}
	return serveOn(listener, id, key, now), nil
}

func serveOn(listener net.Listener, id string, key Key, now func() time.Time) *Server {
	s := &Server{id: id, key: key, now: now, listener: listener}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Go(s.serve)
	return s
}

// Addr is the address and port on which the server listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends all connections. It returns when no goroutine of the server runs any more.
func (s *Server) Close() {
	s.cancel()
	s.listener.Close()
	s.wg.Wait()
}

// acceptRetry is the time between two calls of accept(2) after an error.
const acceptRetry = 20 * time.Millisecond

func (s *Server) serve() {
	places := make(chan struct{}, connections)
	for {
		select {
		case places <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as no free file descriptor, which can be temporary
			<-places
			select {
			case <-s.ctx.Done():
			case <-time.After(acceptRetry):
			}
			continue
		}
		s.wg.Go(func() {
			defer func() { <-places }()
			s.answer(conn)
		})
	}
}

// answer answers requests on a connection until one is not valid.
func (s *Server) answer(conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(s.ctx, func() { conn.Close() })()
	conn.SetDeadline(time.Now().Add(totalTime))
	request, answer := purposes(s.id)
	for {
		sealed := make([]byte, requestLen)
		if _, err := io.ReadFull(conn, sealed); err != nil {
			return
		}
		nonce, err := s.key.Open(request, sealed)
		if err != nil {
			return
		}
		text := binary.BigEndian.AppendUint64(nonce, uint64(s.now().UnixNano()))
		if _, err := conn.Write(s.key.Seal(answer, text)); err != nil {
			return
		}
	}
}

// newNonce is the part of a request that its answer repeats.
func newNonce() []byte {
	nonce := make([]byte, nonceLen)
	rand.Read(nonce)
	return nonce
}
