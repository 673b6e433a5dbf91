package rdzv

import "errors"

// ErrClosed is returned by [Join] if the job in this store has ended. The agent then
// looks for another store: one launcher may run several jobs one after another.
var ErrClosed = errors.New("the job in this store has ended")

// ErrFull is returned by [Join] and [Session.World] if the job in this store already has
// all its agents.
var ErrFull = errors.New("the job in this store already has all its agents")

// ErrStoreLost is the cause of the end of [Session.Context] if the connection to the
// store, and so to the agent that hosts it, is lost. Calls that need the store return it
// too.
var ErrStoreLost = errors.New("lost the store")

// errLeft is the cause of the end of [Session.Context] if the agent left before the job
// ended.
var errLeft = errors.New("this agent has left the job")
