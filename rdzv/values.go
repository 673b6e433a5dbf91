package rdzv

import (
	rules "rdzv/rdzv/internal/job"
	"rdzv/rdzv/internal/record"
)

// What agents publish, and what they agree on. These values are decided on in package internal/job.
type (
	Comparison   = record.Comparison
	Endpoint     = record.Endpoint
	Exports      = record.Exports
	Fact         = record.Fact
	Facts        = record.Facts
	Group        = record.Group
	InitProgress = record.InitProgress
	Kind         = record.Kind
	Link         = record.Link
	Member       = record.Member
	NodeFact     = record.NodeFact
	NodeProblem  = record.NodeProblem
	NodeRanks    = record.NodeRanks
	Outcome      = record.Outcome
	Problem      = record.Problem
	ProblemKind  = record.ProblemKind
	Replaced     = record.Replaced
	Restart      = record.Restart
	Roster       = record.Roster
	Seat         = record.Seat
	Stall        = record.Stall
	Straggler    = record.Straggler
	Stragglers   = record.Stragglers
	Successes    = record.Successes
	Unreached    = record.Unreached
	Verdict      = record.Verdict
	Way          = record.Way
	Worker       = record.Worker
	World        = record.World

	latest    = record.Latest
	look      = record.Look
	preparing = record.Preparing
	reached   = record.Reached
	readiness = record.Readiness
	seatValue = record.SeatValue
	settled   = record.Settled
	started   = record.Started
	stranger  = record.Stranger
)

// Unknown is a rank or size that the launcher does not provide.
const Unknown = record.Unknown

// MaxSlots is the maximum number of workers of an agent: their outcome is one value.
const MaxSlots = record.MaxSlots

// How a job ended.
const (
	Done       = record.Done       // all workers succeeded
	Failed     = record.Failed     // a worker failed first
	Ended      = record.Ended      // an agent received a signal
	Stopped    = record.Stopped    // its user has ended it by a command
	Lost       = record.Lost       // an agent disconnected unexpectedly
	Unready    = record.Unready    // an agent cannot run its workers, or no world can be agreed
	Incomplete = record.Incomplete // not all agents joined in time
	Straggling = record.Straggling // workers still ran long after another one succeeded
	Stalled    = record.Stalled    // all workers ran, and none made progress
	Moved      = record.Moved      // all agents look for the store again; no worker was started
)

// The kinds of problems.
const (
	ProgramMissing       = record.ProgramMissing
	ProgramNotExecutable = record.ProgramNotExecutable
	AgentProblem         = record.AgentProblem
	DifferenceProblem    = record.DifferenceProblem
	OtherProblem         = record.OtherProblem
)

// Compare compares the facts of members: one comparison for each fact, in the order of the facts,
// and then one for each variable, by name. Members with different programs have comparisons of
// their own.
func Compare(members []Member) []Comparison { return rules.Compare(members) }

var spareSeat = record.SpareSeat

func encode[T any](v T) string           { return record.Encode(v) }
func decode[T any](b []byte) (T, error)  { return record.Decode[T](b) }
func decodeAny[T any](b []byte) (T, int) { return record.DecodeAny[T](b) }
func clip(text string) string            { return record.Clip(text) }
