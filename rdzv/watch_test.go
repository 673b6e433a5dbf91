package rdzv

import (
	"context"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refuser makes the store end all watches of a client, and refuse the next ones, as a member of a
// cluster does that was restarted and does not know the user.
type refuser struct {
	mu    sync.Mutex
	next  int // number of watches to refuse
	watch []*refused
}

// refused is the stream of a watch.
type refused struct {
	grpc.ClientStream
	cancel  context.CancelFunc
	refuser *refuser
	refused bool
}

func (r *refuser) client(j *job) *clientv3.Client {
	j.t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{j.address}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(r.intercept)},
	})
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { client.Close() })
	return client
}

func (r *refuser) intercept(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	open grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	if !strings.HasSuffix(method, "/Watch") {
		return open(ctx, desc, conn, method, opts...)
	}
	ctx, cancel := context.WithCancel(ctx)
	stream, err := open(ctx, desc, conn, method, opts...)
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &refused{ClientStream: stream, cancel: cancel, refuser: r, refused: r.next > 0}
	r.next--
	r.watch = append(r.watch, w)
	return w, err
}

func (w *refused) RecvMsg(m any) error {
	err := w.ClientStream.RecvMsg(m)
	w.refuser.mu.Lock()
	defer w.refuser.mu.Unlock()
	if w.refused {
		w.cancel()
		return status.Error(codes.Unauthenticated, "etcdserver: invalid auth token")
	}
	return err
}

func (r *refuser) refuse(next int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = next
	for _, w := range r.watch {
		w.refused = true
		w.cancel()
	}
}

func TestRefusedWatches(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	var all []*Session
	var refusers []*refuser
	for i := range 3 {
		r := &refuser{next: 2}
		refusers = append(refusers, r)
		all = append(all, j.joinWith(r.client(j), j.leased(i, 3)))
	}
	j.worlds(all)
	for _, r := range refusers {
		r.refuse(2)
	}
	if err := all[2].Fail(j.ctx, Worker{Rank: 2, Code: 7}); err != nil {
		t.Fatal(err)
	}
	for i, s := range all {
		if v, ok := j.ended(s).(*Verdict); !ok || v.Kind != Failed || v.Rank != 2 {
			t.Errorf("agent %d: %v", i, context.Cause(s.Context()))
		}
	}
	workers := []Worker{stopped(0), stopped(1), {Rank: 2, Code: 7}}
	for i, sum := range j.finish(all, func(i int) Worker { return workers[i] }) {
		if !sum.Settled {
			t.Errorf("agent %d: %+v", i, sum)
		}
	}
	j.wantNothingLeft()
}
