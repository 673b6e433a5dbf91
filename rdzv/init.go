package rdzv

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/record"
	"rdzv/rdzv/internal/signals"
)

// Init is for what agents tell each other until all workers have reached init_process_group.
type Init struct {
	store    *kv.Store
	keys     keys.Attempt
	self     string           // ID of this agent
	lease    clientv3.LeaseID // of this agent
	jobLease clientv3.LeaseID
	signals  *signals.Signals
}

// Release tells all agents that rank 0 has had its head start (World.HeadStart). Only its agent
// calls it.
func (i *Init) Release(ctx context.Context) error {
	value := record.Encode(record.HeadStartOver{})
	if err := i.store.Put(ctx, i.keys.Release(), value, i.jobLease); err != nil {
		return fmt.Errorf("cannot write that the head start is over: %w", err)
	}
	return nil
}

// Released returns a channel that is closed when the agent of rank 0 has called Release.
func (i *Init) Released() <-chan struct{} { return i.signals.Release.Done() }

// Absent tells the leader that rank 0's agent, which calls it, has reported that rank 0 does not
// listen on MASTER_PORT.
func (i *Init) Absent(ctx context.Context) error {
	value := record.Encode(record.Rank0Absent{})
	if err := i.store.Put(ctx, i.keys.Absent(), value, i.jobLease); err != nil {
		return fmt.Errorf("cannot write that rank 0 does not listen: %w", err)
	}
	return nil
}

// Reached publishes that all workers of this agent have reached init_process_group except some. The
// agent of rank 0 calls it when rank 0 has reached it, and then another one when the leader asks
// (see Queried), unless it has nothing to except; both call it again when fewer are missing.
func (i *Init) Reached(ctx context.Context, except []Unreached) error {
	value := record.Encode(record.Reached{Missing: except})
	if err := i.store.Put(ctx, i.keys.Reached().Of(i.self), value, i.lease); err != nil {
		return fmt.Errorf("cannot write which workers have reached init_process_group: %w", err)
	}
	return nil
}

// Queried returns a channel that is closed when the leader asks this agent which of its workers
// have not reached init_process_group, because rank 0 has. It answers with Reached, if there are
// any.
func (i *Init) Queried() <-chan struct{} { return i.signals.Query.Done() }

// Progress delivers what the leader reports about init_process_group, see LeaderConfig.Init.
func (i *Init) Progress() <-chan InitProgress { return i.signals.Progress }
