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
// (follow, which has the order of the rules). Nothing follows from a change alone. So a leader that
// reads all keys at once ([Restore]) decides like one that has seen them being put: Restore absorbs
// them in the order of their revisions. The store has no deletions then. Therefore a loss is a key,
// lost/ID, and an agent whose key agent/ID is gone is lost only when that has been written. Its
// key member/ID stays, by which a leader that is new finds that it is gone.
//
// What is written without a condition happens: it is noted at once, and noted again when it is
// read. What has a condition is noted when it is read, except for the answers to agents that join
// late (late.go) and for what follows an attempt (next.go): nobody but a leader writes those.
//
// Each feature is a type with its part of the state, the keys that it reads, and its rule. It knows
// the features that it needs, which are below it in this list from general to detailed:
//
//	restore.go      a state from what is in the store
//	state.go        State: which change is whose, and the order of the rules
//	next.go         succession: signal/settled, latest: what follows an attempt
//	absorb.go       attempt: which change is which feature's, and when the workers start
//	attempt.go      attempt: which features there are, and which of them knows which; agents that
//	                are lost or have left
//	world.go        agreement: seat/ID, signal/exports, signal/world: the seats
//	waiting.go      gathering: which are missing, and how long the others wait
//	gather.go       gathering: member/ID: which have joined, also in an elastic job
//	outcome.go      outcomes: outcome/ID, progress/ID: how workers have ended
//	withdraw.go     leaving: signal/left/ID: agents that leave the job
//	late.go         late: agents that join an elastic job late
//	problems.go     problems: of members, and differences between their nodes
//	stragglers.go   stragglers: workers that run long after others have succeeded
//	loss.go         losses: whether the job goes on without an agent
//	roster.go       who has joined, for people
//	agents.go       agents: agent/ID, lost/ID: which agents live
//	ending.go       phase, ending: signal/verdict: how far an attempt has come, and how it ends
//	vacancy.go      members: seats of lost agents, which spares or others take over
//	members.go      members: those of an attempt
//	overlap.go      overlap: no worker runs when one of the next attempt starts
//	change.go       what is read, written and told
//	config.go       Config
//
// The seats themselves are those of package placement.
package job
