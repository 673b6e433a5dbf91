// Package samehost makes an agent the only one on this host that looks for the others of its job.
package samehost

import (
	"errors"
	"fmt"
	"os"

	"rdzv/internal/claim"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/host"
	"rdzv/rdzv/secret"
)

// Claim makes this agent the only one, until release is called. Without a launcher, two agents of
// one host that have no node ranks are two jobs with the same command. The store refuses the one
// that joins later; before there is a store, this refuses the one that is started later. The error
// is an *rdzv.OccupiedError.
//
// A process of another user that has the claim does not count. Agents with different tokens are of
// different jobs; the token is nil without one. job is what else tells jobs apart.
func Claim(token []byte, job string) (release func(), err error) {
	job = fmt.Sprintf("%d %q %s", os.Geteuid(), host.NodeID(), job)
	held, err := claim.Take(fmt.Sprintf("joining/%x", secret.Expand(token, "joining\x00"+job, 16)))
	if taken, ok := errors.AsType[*claim.TakenError](err); ok && taken.PID > 0 {
		return nil, &rdzv.OccupiedError{Host: host.Name(), PID: taken.PID}
	}
	if err != nil {
		return func() {}, nil
	}
	return held.Close, nil
}
