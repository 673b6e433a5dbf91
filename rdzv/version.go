package rdzv

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/protocol"
)

// OtherVersionError means that the agents that run the job in a store that no agent hosts have
// another version of the protocol. Where an agent hosts the store it refuses others itself.
type OtherVersionError struct {
	Host    string // of one of them; "" if it is not known
	version *protocol.VersionError
}

func (e *OtherVersionError) Error() string {
	return cmp.Or(e.Host, "another agent") + ", which runs the job, " + e.version.Error()
}

// Hint says what to do.
func (e *OtherVersionError) Hint() string { return protocol.Advice }

// decodeRun decodes the value of the key run. That of another version has the same id.
func decodeRun(value []byte) (run, error) {
	r, err := decode[run](value)
	if _, is := errors.AsType[*protocol.VersionError](err); is {
		r, _ = decodeAny[run](value)
	}
	return r, err
}

// otherVersion tells the agents of a run of another version about this one, and returns why it
// cannot join.
func (s *Session) otherVersion(
	ctx context.Context, other run, version *protocol.VersionError,
) error {
	r := s.registration
	r.run = r.name.ofRun(other.ID)
	refusal := &OtherVersionError{version: version}
	if agents, err := get(ctx, s.client, r.run.agents(), clientv3.WithFirstCreate()...); err != nil {
		return err
	} else if len(agents.Kvs) > 0 {
		m, _ := decodeAny[Member](agents.Kvs[0].Value)
		refusal.Host = m.Host
	}
	self := s.config.Self
	put := clientv3.OpPut(r.run.strangers()+self.ID, encode(stranger{Host: self.Host, PID: self.PID}),
		clientv3.WithLease(r.lease))
	if _, err := commit(ctx, s.client, r.runs(), []clientv3.Op{put}, nil); err != nil {
		return fmt.Errorf("cannot tell the agents of job %q that this one has another version: %w",
			s.config.Job, err)
	}
	return refusal
}
