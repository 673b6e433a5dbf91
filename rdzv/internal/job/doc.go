// Package job decides for the leader of a job: who its members are, which seats they have, when
// their workers start, how an attempt ends, and whether another one follows. It has no store, no
// clock and no goroutine. A [State] takes what has happened to the keys of the job and returns what
// is to be written:
//
//	changes of the store -> State.Apply -> writes and notices
//
// The caller watches the keys of the job's run, applies the changes of each revision, commits the
// writes in order with the condition that this agent still leads, and calls Apply again at
// [State.Wake]. It need not tell a State whether a write had an effect: the changes say that.
//
// A State notes what is in the store (absorb), and then finds what follows from all that it knows
// (follow). Nothing follows from a change alone. So a leader that reads all keys at once
// ([Restore]) decides like one that has seen them being put: Restore absorbs them in the order of
// their revisions. The store has no deletions then. Therefore a loss is a key, lost/ID, and an
// agent whose key agent/ID is gone is lost only when that has been written.
//
// What is written without a condition happens: it is noted at once, and noted again when it is
// read. What has a condition is noted when it is read.
//
// Each feature has a file with its part of the state, the keys that it reads, and its rule:
//
//	agents.go       agent/ID, lost/ID: which agents live
//	gather.go       member/ID: which have joined this attempt
//	world.go        seat/ID, signal/world: the seats
//	spare.go        agents without workers, which take over seats
//	vacancy.go      seats of lost agents, which others take over
//	elastic.go      a variable number of agents
//	late.go         agents that join such a job late
//	withdraw.go     signal/left/ID: agents that leave the job
//	exports.go      ready/ID, signal/start: what rank 0's agent exports
//	init.go         reached/ID, signal/look, signal/init: ranks missing in init_process_group
//	absent.go       connecting/ID, signal/absent: a rank 0 that does not listen
//	check.go        problems and differences of nodes, and connections between them
//	stragglers.go   workers that run long after others have succeeded
//	ending.go       signal/verdict, outcome/ID, progress/ID: how an attempt ends
//	cause.go        a loss that is known later than the failure that follows from it
//	attempt.go      signal/settled, latest: what follows
//	overlap.go      no worker runs when one of the next attempt starts
package job
