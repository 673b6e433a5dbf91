package registration

import (
	"context"
	"time"

	"rdzv/rdzv/internal/record"
)

// Config describes an agent and how it registers, see Config of package rdzv.
type Config struct {
	Job            string
	Prefix         string
	Self           record.Member
	ConnectTimeout time.Duration
	Renewed        func(until time.Duration) // may be nil

	// In a store that no agent hosts: NoLease is why this agent cannot register there, nil if it can.
	// JobTTL is that of the job's lease.
	NoLease                           error
	PeerTimeout, StoreTimeout, JobTTL time.Duration
	Outlives, LostGrace               time.Duration
	// ReturnTime is how long agents may take to register again, see AwaitReturn.
	ReturnTime time.Duration
	// Lead leads the job. If it returns ErrDeposed it may be called again later.
	Lead func(context.Context, Turn) error
}
