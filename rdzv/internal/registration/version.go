package registration

import (
	"cmp"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"rdzv/rdzv/internal/protocol"
	"rdzv/rdzv/internal/record"
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

// decode decodes a value, also one of another version, which has the same fields. The error says
// that it is of another version, or why it cannot be decoded.
func decode[T any](value []byte) (T, error) {
	v, err := record.Decode[T](value)
	if _, is := errors.AsType[*protocol.VersionError](err); is {
		v, _ = record.DecodeAny[T](value)
	}
	return v, err
}

// hostOf is the host of the first of the agents, whose version may be another one; "" if there is
// none.
func hostOf(agents []*mvccpb.KeyValue) string {
	if len(agents) == 0 {
		return ""
	}
	m, _ := record.DecodeAny[record.Member](agents[0].Value)
	return m.Host
}
