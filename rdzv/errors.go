package rdzv

import "errors"

// ErrClosed is returned by [Join] when the store's job has ended already. An
// agent that meets such a store looks for another: under one launcher several
// jobs may run one after another.
var ErrClosed = errors.New("the job in this store has ended")

// ErrFull is returned by [Join] and [Session.World] when the store's job runs
// with all its agents and this is one more.
var ErrFull = errors.New("the job in this store already has all its agents")

// ErrStoreLost is the cause of [Session.Context]'s end when the store, and with
// it the agent that hosted it, is gone. Calls that need the store return it too.
var ErrStoreLost = errors.New("lost the store")

// errLeft is the cause after [Session.Leave].
var errLeft = errors.New("this agent has left the job")
