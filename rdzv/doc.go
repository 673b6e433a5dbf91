// Package rdzv lets the agents of one job agree on a world through an etcd store, and
// reports the end of the job, above all its first failure, to all of them.
//
// An agent is a process that runs one or more workers, such as "rdzv exec". It
//
//	joins      [Join]: registers in the store, watches the job's signals, then
//	           publishes a [Member]
//	is seated  [Session.World]: receives its ranks and the address of rank 0
//	runs       until [Session.Context] ends, which is when the job ends
//	ends       the job if it has to: [Session.Fail], [Session.End], [Session.ReportLoss]
//	settles    [Session.Settle]: publishes how its workers ended
//	leaves     [Session.Leave]: when all agents have settled, with the job's verdict
//	returns    [Session.Next]: to the next attempt, if there is one after a failure
//
// One of them, the host of the store, is also the leader ([Leader]): it gathers the
// members, assigns the seats, publishes the world, and at the end publishes that all
// agents have settled. The agent that detects the first failure writes the verdict. The
// store accepts only one, so that all agents read the same one. After a failure the leader can
// let the agents form another attempt ([LeaderConfig.Restarts]), whose keys are others. An agent
// that is lost leaves its seat to another one ([LeaderConfig.Replaceable]).
//
// # Other stores
//
// Any etcd cluster of version 3.4 or later can be the store, with any client of it. Where the
// store does not have the service of package presence, an agent is present as long as its lease
// ([Config.PeerTimeout]), and no agent is the leader beforehand: the one that joined first leads
// ([Config.Lead]), and if it is lost the next one continues with what is in the store. If an agent
// without a launcher is lost before the world is agreed, the others get the verdict [Moved] and
// join again. Join waits for agents of an earlier run that were killed, and for their workers
// ([Config.Delayed]). The last agent removes all keys of the job. If all agents are killed, leases
// remove them: those of the job live longer than its workers can ([Config.Outlives]).
//
// # Keys
//
// The protocol consists of the keys under /rdzv/v1/JOB/ (see package internal/keys). Those of all
// attempts are
//
//	agent/ID        exists as long as an agent is present      Member
//	lost/ID         it is lost or has left, and how            Loss
//	host/NODE/RANK  the agent there, without a launcher        occupant
//	latest          number of the latest attempt               Latest
//
// and those of one attempt, under /rdzv/v1/JOB/ATTEMPT/,
//
//	member/ID       an agent before the world is agreed        Member
//	seat/ID         its place in the world                     SeatValue
//	signal/exports  variables of rank 0's agent for all        Exports
//	signal/world    the start signal, written by the leader    World
//	signal/release  rank 0 has had its head start              HeadStartOver
//	signal/verdict  how the job ended, the first writer wins   Verdict
//	signal/left/ID  this agent may leave the job               true
//	progress/ID     which of an agent's workers have ended     Outcome
//	outcome/ID      how an agent's workers ended               Outcome
//	signal/settled  all have settled, written by the leader    Settled
//	signal/ask      a question to all agents, of any of them   ask
//	answer/ASK/ID   what an agent answers to question ASK      Answer
//
// In a store that no agent hosts there is also the key run, and all others are below run/ID/, so
// that a later job of the same name does not read them.
//
// Values are JSON with a version. Each agent watches signal/ and gets its own seat, and
// only the leader reads the keys of all agents: the cost is linear in the number of
// agents. Events are ordered by the store's revisions; clocks are never compared.
//
// # What it does not do
//
// It starts no processes (package wrap), reads no environment (package envmap), neither
// locates a store (package meet) nor runs one (package store).
package rdzv
