package kv

import (
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestUnavailable(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"no connection":           {status.Error(codes.Unavailable, "connection refused"), true},
		"a store that is closing": {status.Error(codes.Unknown, "raft: stopped"), true},
		"another error":           {status.Error(codes.Unknown, "raft: proposal dropped"), false},
		"not from a store":        {errors.New("raft: stopped"), false},
	} {
		if got := Unavailable(test.err); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestOverloaded(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"too many": {ownError{codes.ResourceExhausted, "etcdserver: too many requests"}, true},
		"a full store": {ownError{codes.ResourceExhausted,
			"etcdserver: mvcc: database space exceeded"}, false},
		"another error": {ownError{codes.InvalidArgument, "etcdserver: too many requests"}, false},
		"not from etcd": {errors.New("too many requests"), false},
	} {
		if got := overloaded(test.err); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// ownError is an error as etcd's client returns it.
type ownError struct {
	code codes.Code
	text string
}

func (e ownError) Code() codes.Code { return e.code }
func (e ownError) Error() string    { return e.text }
