package query

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"rdzv/internal/peer"
)

// Agent answers for an agent.
type Agent interface {
	// Job says which job the agent belongs to.
	Job() Job
	// Answer answers a request by JSON, on behalf of the agents of the job with these IDs. Its context
	// ends when the client has gone, or the agent is about to end.
	Answer(context.Context, Request) (value []byte, members []string, err error)
}

// Server answers requests of this user's processes.
type Server struct {
	listener *net.UnixListener
	agent    Agent
	uid      int             // whose processes are answered
	ctx      context.Context // of the answers
	cancel   context.CancelFunc
	wg       sync.WaitGroup
}

// Listen starts to answer requests of the user uid until Close.
func Listen(agent Agent, uid int) (*Server, error) {
	var l *net.UnixListener
	err := peer.CheckUser(uid)
	if err == nil {
		addr := &net.UnixAddr{Net: "unix", Name: prefix + rand.Text()[:16]}
		l, err = net.ListenUnix("unix", addr)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot answer other processes of this user: %w", err)
	}
	s := &Server{listener: l, agent: agent, uid: uid}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Go(s.accept)
	return s, nil
}

// Close ends the answers and waits for them. One that is complete is still sent: what the client
// asked for may be why the agent ends.
func (s *Server) Close() {
	s.cancel()
	s.listener.Close()
	s.wg.Wait()
}

func (s *Server) accept() {
	for pause := time.Duration(0); s.ctx.Err() == nil; {
		conn, err := s.listener.AcceptUnix()
		switch {
		case err == nil:
			pause = 0
			s.wg.Go(func() { s.serve(conn) })
		case errors.Is(err, net.ErrClosed):
			return
		default: // no file descriptor is free at the moment
			pause = min(2*pause+10*time.Millisecond, time.Second)
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
			}
		}
	}
}

// root may ask every agent: it could read the memory of each.
const root = 0

// serve answers the request of one connection.
func (s *Server) serve(conn *net.UnixConn) {
	defer conn.Close()
	_ = conn.SetWriteDeadline(time.Now().Add(serveLimit))
	defer context.AfterFunc(s.ctx, func() {
		_ = conn.CloseRead()
		_ = conn.SetWriteDeadline(time.Now().Add(lastWrite))
	})()
	if _, err := verify(conn, s.uid, root); err != nil {
		return
	}
	var request Request
	_ = conn.SetReadDeadline(time.Now().Add(readLimit))
	err := read(conn, maxRequest, &request)
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer conn.Close() // ends what follows
	_ = conn.SetReadDeadline(time.Time{})
	watching.Go(func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, conn) // until the client has gone
	})
	var r reply
	if r.Value, err = s.reply(ctx, request); err != nil {
		r = reply{Error: err.Error()}
	}
	if err != nil && s.ctx.Err() != nil {
		return // to the client the agent has ended, which is not an answer that failed
	}
	_ = write(conn, r) // fails if the client has gone
}

func (s *Server) reply(ctx context.Context, r Request) ([]byte, error) {
	if r.Kind == kindJob {
		return json.Marshal(s.agent.Job())
	}
	value, members, err := s.agent.Answer(ctx, r)
	if err != nil {
		return nil, err
	}
	return json.Marshal(jobAnswer{members, value})
}
