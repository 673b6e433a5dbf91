package kv

import (
	"context"
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Nothing is asked of a store when the context has ended: one in this process would do it.
func TestAgainAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	left := errors.New("left")
	cancel(left)
	_, err := Again(ctx, func() (int, error) {
		t.Error("the store was asked")
		return 0, nil
	})
	if err != left {
		t.Errorf("%v, want %v", err, left)
	}
}

// A client that has been closed has lost its store; it does not read again until the store returns.
func TestReadWithClosedClient(t *testing.T) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"127.0.0.1:1"}, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
	if _, _, _, err := ReadAndWatch(t.Context(), client, "/"); err != ErrLost {
		t.Errorf("%v, want %v", err, ErrLost)
	}
}
