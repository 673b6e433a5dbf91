package job

import (
	"rdzv/rdzv/internal/record"
)

// The values of keys, and what they consist of.
type (
	Comparison   = record.Comparison
	Connecting   = record.Connecting
	Endpoint     = record.Endpoint
	Exports      = record.Exports
	Fact         = record.Fact
	Facts        = record.Facts
	Group        = record.Group
	InitProgress = record.InitProgress
	Kind         = record.Kind
	Latest       = record.Latest
	Link         = record.Link
	Look         = record.Look
	Loss         = record.Loss
	Member       = record.Member
	NodeProblem  = record.NodeProblem
	NodeRanks    = record.NodeRanks
	Outcome      = record.Outcome
	Preparing    = record.Preparing
	Problem      = record.Problem
	Reached      = record.Reached
	Readiness    = record.Readiness
	Replaced     = record.Replaced
	Restart      = record.Restart
	Roster       = record.Roster
	Seat         = record.Seat
	SeatValue    = record.SeatValue
	Settled      = record.Settled
	Started      = record.Started
	Straggler    = record.Straggler
	Stragglers   = record.Stragglers
	Stranger     = record.Stranger
	Successes    = record.Successes
	Unreached    = record.Unreached
	Verdict      = record.Verdict
	Path         = record.Path
	Worker       = record.Worker
	World        = record.World
)

// Unknown is a rank or size that the launcher does not provide.
const Unknown = record.Unknown
