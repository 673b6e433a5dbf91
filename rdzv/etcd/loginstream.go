package etcd

import (
	"context"
	"io"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// dialOptions are those of a client that logs in. Its own interceptors call these.
func (l *login) dialOptions() []grpc.DialOption {
	if l.user == "" {
		return nil
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(l.call), grpc.WithChainStreamInterceptor(l.open),
	}
}

// open opens a stream. Its token is the one with which it was opened.
func (l *login) open(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &stream{login: l, ctx: ctx, cancel: cancel}
	s.open = func() error {
		t, fresh, err := l.get(ctx, conn)
		if err != nil {
			return err
		}
		opened, err := streamer(t.send(ctx), desc, conn, method, opts...)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ClientStream, s.token, s.proven = opened, t, !fresh
		return nil
	}
	if err := s.open(); err != nil {
		cancel()
		return nil, err
	}
	if method == etcdserverpb.Lease_LeaseKeepAlive_FullMethodName {
		return &renewals{stream: s}, nil
	}
	return s, nil
}

// stream is a stream that forgets the token when etcd refuses it.
type stream struct {
	login  *login
	ctx    context.Context
	cancel context.CancelFunc
	open   func() error // another one, with a token that is not known to be refused

	mu sync.Mutex
	grpc.ClientStream
	token  *token
	proven bool // the token was accepted at some time
}

// RecvMsg receives a message. If etcd refuses a watch because of the stream's token the client gets
// an error with which it opens another stream for all its watches, and continues them there. etcd
// 3.4 then says that the user has no permission; that is believed only with a new token.
func (s *stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	w, watch := m.(*etcdserverpb.WatchResponse)
	switch {
	case err != nil && refused(status.Convert(err).Message()):
		s.login.forget(s.token)
	case err == nil && watch && w.Canceled && (refused(w.CancelReason) ||
		strings.HasSuffix(w.CancelReason, rpctypes.ErrPermissionDenied.Error())):
		s.login.forget(s.token)
		if s.proven {
			err = status.Error(codes.Unavailable, w.CancelReason)
		}
	case err == nil && watch && w.Created:
		s.proven = true
	}
	if err != nil {
		s.cancel()
	}
	return err
}

// renewals is a stream of requests to renew leases. etcd 3.7 examines the token for each. If it is
// refused the last request is sent again on another stream: etcd's client would wait 500 ms, and a
// lease may expire meanwhile.
type renewals struct {
	*stream
	last any // request; guarded by mu
}

// Context ends with the last stream.
func (r *renewals) Context() context.Context { return r.ctx }

func (r *renewals) SendMsg(m any) error {
	r.mu.Lock()
	r.last = m
	current := r.ClientStream
	r.mu.Unlock()
	err := current.SendMsg(m)
	if err == io.EOF {
		return nil // RecvMsg gets the reason
	}
	return err
}

func (r *renewals) RecvMsg(m any) error {
	for again := false; ; again = true {
		err := r.ClientStream.RecvMsg(m)
		if err == nil {
			return nil
		}
		known := refused(status.Convert(err).Message())
		if known {
			r.login.forget(r.token)
		}
		if !known || again || r.reopen() != nil {
			r.cancel()
			return err
		}
	}
}

func (r *renewals) reopen() error {
	if err := r.open(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ClientStream.SendMsg(r.last)
}
