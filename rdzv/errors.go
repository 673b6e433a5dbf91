package rdzv

import (
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv/internal/kv"
	"rdzv/rdzv/internal/registration"
)

// ErrClosed is returned by [Join] if the job in this store has ended. The agent then
// looks for another store: one launcher may run several jobs one after another.
var ErrClosed = errors.New("the job in this store has ended")

// ErrFull is returned by [Join] and [Session.World] if the job in this store already has
// all its agents.
var ErrFull = errors.New("the job in this store already has all its agents")

// OccupiedError is returned by [Join] if the job already has another agent on this host, and the
// two have neither ranks of a launcher nor different node ranks. The job goes on without this
// agent.
type OccupiedError struct {
	Host string
	PID  int // of the other agent

	lease clientv3.LeaseID // of the other agent, in a store that no agent hosts
}

func (e *OccupiedError) Error() string {
	return fmt.Sprintf("the job already has an agent on this host: pid %d on %s", e.PID, e.Host)
}

// EarlierRunError says that [Join] waits because processes of an earlier run of the job may run, in
// a store that no agent hosts: its agents have not reported that all have ended.
type EarlierRunError struct {
	Job    string
	Ending bool // it has agents, which end them; otherwise they have lost the store, or were killed
}

func (e *EarlierRunError) Error() string {
	if e.Ending {
		return fmt.Sprintf("an earlier run of job %q has ended, but not all of its processes", e.Job)
	}
	return fmt.Sprintf("processes of an earlier run of job %q may still be running: its agents have "+
		"lost the store, or were killed", e.Job)
}

// ErrStoreLost is the cause of the end of [Session.Context] if the connection to the store, and so
// to the agent that hosts it, is lost. Calls that need the store return it too.
var ErrStoreLost = kv.ErrLost

// StoreLostError is ErrStoreLost with the reason, if that is known.
type StoreLostError = kv.LostError

// ErrWithdrawn is the cause of the end of [Session.Context], and returned by [Session.Leave], if
// this agent has left the job, which goes on, when it ran no workers, see [Session.Withdraw].
var ErrWithdrawn = errors.New("this agent has left the job, which goes on without it")

// OtherVersionError means that the agents that run the job in a store that no agent hosts have
// another version of the protocol. Where an agent hosts the store it refuses others itself.
type OtherVersionError = registration.OtherVersionError

// noPlace tells whether an attempt has no place for an agent.
func noPlace(err error) bool {
	_, occupied := errors.AsType[*OccupiedError](err)
	return occupied || err == ErrClosed || err == ErrFull
}
