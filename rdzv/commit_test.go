package rdzv

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
		"another mistake":         {status.Error(codes.Unknown, "raft: proposal dropped"), false},
		"no answer of a store":    {errors.New("raft: stopped"), false},
	} {
		if got := unavailable(test.err); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}
