package rdzv

import "errors"

// ErrClosed is returned by [Join] when the store's job has ended already. An
// agent that meets such a store looks for another: under one launcher several
// jobs may run one after another.
var ErrClosed = errors.New("the job of this store is over")

// ErrStoreLost is the cause of [Session.Context]'s end when the store, and with
// it the agent that hosted it, is gone.
var ErrStoreLost = errors.New("lost the store")

// ErrLeft is the cause after [Session.Leave].
var ErrLeft = errors.New("left the job")
