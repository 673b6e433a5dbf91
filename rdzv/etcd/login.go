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
// computes a hash that is meant to be costly: the last worker of 64 agents then starts after 8.7 s
// instead of 2.6 s (etcd 3.4.23 and the agents on two cores). Here a token is used until a member
// refuses it: it has expired, or the member was restarted, or users have changed. clientv3's login
// also fails with an expired token, because etcd 3.4 refuses a login with one.
type login struct {
	user, password string

	token  atomic.Pointer[token] // nil if the next call has to log in
	first  chan struct{}         // full while a call logs in
	second chan struct{}         // full while another call does, because the first got no answer
}

// token has the text that etcd expects with each call, "" if the cluster does not use
// authentication. Each login allocates one, because forget compares the pointers.
type token struct{ text string }

// patience is how long a call waits for the login of another one. That may be sent to a member
// whose host has disappeared; the next login is sent to another member. There are at most two,
// because the members may be overloaded with logins.
const patience = 250 * time.Millisecond

func newLogin(user, password string) *login {
	return &login{
		user: user, password: password,
		first: make(chan struct{}, 1), second: make(chan struct{}, 1),
	}
}

// get returns the token. fresh tells whether this call has logged in for it.
func (l *login) get(ctx context.Context, conn *grpc.ClientConn) (t *token, fresh bool, err error) {
	if t := l.token.Load(); t != nil {
		return t, false, nil
	}
	done, err := l.turn(ctx)
	if err != nil {
		return nil, false, err
	}
	defer done()
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

// turn waits until the call may log in. Perhaps another one has done so meanwhile.
func (l *login) turn(ctx context.Context) (done func(), err error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	var second chan struct{}
	for {
		select {
		case l.first <- struct{}{}:
			return func() { <-l.first }, nil
		case second <- struct{}{}:
			return func() { <-l.second }, nil
		case <-late.C:
			second = l.second
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
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

// dialOptions are those of a client that logs in. Its own interceptors call these.
func (l *login) dialOptions() []grpc.DialOption {
	if l.user == "" {
		return nil
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(l.call), grpc.WithChainStreamInterceptor(l.open),
	}
}

// call makes a call, twice if the token is refused: etcd has not executed it then. A login is sent
// without a token, because etcd 3.4 refuses one with an expired token.
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

// open opens a stream, whose token is always the one with which it was opened.
func (l *login) open(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	t, fresh, err := l.get(ctx, conn)
	if err != nil {
		return nil, err
	}
	opened, err := streamer(t.send(ctx), desc, conn, method, opts...)
	if err != nil {
		return nil, err
	}
	return &stream{ClientStream: opened, login: l, token: t, proven: !fresh}, nil
}

// stream is a stream that forgets the token when etcd refuses it: who opens another one logs in.
type stream struct {
	grpc.ClientStream
	login  *login
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
	return err
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
