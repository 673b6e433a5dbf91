// Package rdzv brings the agents of one job together through an etcd store, and
// makes the end of the job, above all its first failure, known to all of them.
//
// An agent is a process that runs one or more workers, such as "rdzv exec". It
//
//	joins      [Join]: comes onto the store's roll, watches the job's signals,
//	           then says what it is
//	is seated  [Session.World]: learns its ranks and how to reach rank 0
//	runs       [Session.Context] lives as long as the job does
//	stops      [Session.Fail], [Session.End]: or another agent says so first
//	settles    [Session.Settle]: says how its workers ended
//	leaves     [Session.Leave]: when all have settled, with the job's verdict
//
// One of them, the host of the store, also leads ([Leader]): it gathers the
// members, gives them their seats, tells all of the world, and at the end that
// everybody has settled. Whoever sees the first failure writes the verdict; the
// store accepts one, so all agents learn the same one.
//
// # Keys
//
// Etcd is the whole protocol. Under /rdzv/v1/JOB/ATTEMPT/ (see keys.go) stand
//
//	member/ID       what one agent says of itself        Member
//	seat/ID         where it sits                        Seat
//	signal/world    the go, written once by the leader   World
//	signal/verdict  how the job ended, first writer wins Verdict
//	progress/ID     which of its workers have ended      Outcome
//	outcome/ID      how one agent's workers ended        Outcome
//	signal/settled     all have settled, written by the leader
//
// as JSON with a version. Each agent watches signal/ and gets its own seat, and
// nobody but the leader reads all of anything: the cost is linear in the number
// of agents. The order of events is that of the store's revisions; no clock is
// compared with another.
//
// # What it does not do
//
// It starts no processes (package wrap does), reads no environment (package
// envmap does), finds no store (package meet does) and runs none (package store
// does). It does not restart anything.
package rdzv
