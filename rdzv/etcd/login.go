package etcd

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// login logs a client in, and sends the token with all its calls. clientv3 would log in again for
// each stream, and each login takes a member of the cluster 60 to 100 ms of CPU time, because it
// computes a hash that is meant to be costly. Here a token is used until a member refuses it: it has
// expired, or the member was restarted, or users have changed.
type login struct {
	user, password string

	token atomic.Pointer[token] // nil if the next call has to log in
	busy  chan struct{}         // full while a call logs in
}

// token is what a login returns; it is empty if the cluster has no users.
type token struct{ text string }

// patience is how long a call waits for the login of another one. That may be sent to a member
// whose host has disappeared; the next login is sent to another member.
const patience = 500 * time.Millisecond

func newLogin(user, password string) *login {
	return &login{user: user, password: password, busy: make(chan struct{}, 1)}
}

// dialOptions are those of a client that logs in. Its own interceptors call these.
func (l *login) dialOptions() []grpc.DialOption {
	if l.user == "" {
		return nil
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(l.call), grpc.WithChainStreamInterceptor(l.open),
	}
}

// get returns the token. fresh tells whether this call has logged in for it.
func (l *login) get(ctx context.Context, conn *grpc.ClientConn) (t *token, fresh bool, err error) {
	if t := l.token.Load(); t != nil {
		return t, false, nil
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case l.busy <- struct{}{}:
		defer func() { <-l.busy }()
	case <-late.C:
	case <-ctx.Done():
		return nil, false, status.FromContextError(ctx.Err()).Err()
	}
	if t := l.token.Load(); t != nil {
		return t, false, nil
	}
	answer, err := etcdserverpb.NewAuthClient(conn).Authenticate(ctx,
		&etcdserverpb.AuthenticateRequest{Name: l.user, Password: l.password})
	if err != nil && !errors.Is(rpctypes.Error(err), rpctypes.ErrAuthNotEnabled) {
		return nil, false, err
	}
	t = &token{answer.GetToken()}
	l.token.Store(t)
	return t, true, nil
}

// forget makes the next call log in, unless another one has done so since it got the token.
func (l *login) forget(t *token) { l.token.CompareAndSwap(t, nil) }

// send returns a context with which a call sends the token.
func (t *token) send(ctx context.Context) context.Context {
	if t.text == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, t.text)
}

// call makes a call, twice if the token is refused: etcd has not executed it then.
func (l *login) call(
	ctx context.Context, method string, request, answer any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	if method == etcdserverpb.Auth_Authenticate_FullMethodName {
		return invoke(ctx, method, request, answer, conn, opts...)
	}
	for again := false; ; again = true {
		t, _, err := l.get(ctx, conn)
		if err != nil {
			return err
		}
		err = invoke(t.send(ctx), method, request, answer, conn, opts...)
		if err == nil || !refused(status.Convert(err).Message()) {
			return err
		}
		l.forget(t)
		if again {
			return err
		}
	}
}

// refused tells from etcd's words whether it would accept the call with another token.
func refused(why string) bool {
	for _, err := range []error{
		rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision, rpctypes.ErrUserEmpty,
	} {
		if strings.HasSuffix(why, err.Error()) {
			return true
		}
	}
	return false
}

// open opens a stream, whose token is the one with which it was opened.
func (l *login) open(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	t, fresh, err := l.get(ctx, conn)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(t.send(ctx))
	s, err := streamer(ctx, desc, conn, method, opts...)
	if err != nil {
		cancel()
		return nil, err
	}
	return &stream{ClientStream: s, login: l, token: t, proven: !fresh, cancel: cancel}, nil
}

// stream is a stream that forgets the token when etcd refuses it.
type stream struct {
	grpc.ClientStream
	login  *login
	token  *token
	proven bool // the token was accepted at some time
	cancel context.CancelFunc
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
