package rdzv

import (
	rules "rdzv/rdzv/internal/job"
	"rdzv/rdzv/internal/keys"
	"rdzv/rdzv/internal/questions"
	"rdzv/rdzv/internal/record"
)

// What agents publish, and what they agree on. These values are decided on in package internal/job.
type (
	Comparison   = record.Comparison
	Detail       = record.Detail
	Exports      = record.Exports
	Fact         = record.Fact
	Facts        = record.Facts
	Group        = record.Group
	InitProgress = record.InitProgress
	Kind         = record.Kind
	Member       = record.Member
	NodeProblem  = record.NodeProblem
	NodeRanks    = record.NodeRanks
	Outcome      = record.Outcome
	Problem      = record.Problem
	ProblemKind  = record.ProblemKind
	Replaced     = record.Replaced
	Restart      = record.Restart
	Roster       = record.Roster
	Seat         = record.Seat
	SeatTask     = record.SeatTask
	Seconds      = record.Seconds
	Signal       = record.Signal
	Stall        = record.Stall
	Straggler    = record.Straggler
	Stragglers   = record.Stragglers
	Successes    = record.Successes
	Task         = record.Task
	ToldVerdict  = record.ToldVerdict
	Verdict      = record.Verdict
	Path         = record.Path
	Worker       = record.Worker
	World        = record.World
)

// LeaderConfig describes the job to lead, by the Rules of its user.
type (
	LeaderConfig = rules.Config
	Rules        = rules.Rules
)

// A Notice tells of something that needs no answer: a [Waiting] while agents are missing, a
// [NodesDiffer] for each difference that is no problem when all have joined, [Stragglers] some time
// after the first success, or a [Warning].
type (
	Notice      = rules.Notice
	Waiting     = record.Waiting
	NodesDiffer = record.NodesDiffer
	Warning     = rules.Warning
)

// MaxLostGrace is the largest LeaderConfig.LostGrace.
const MaxLostGrace = rules.MaxLostGrace

// RanksText is "rank 8", or "ranks 4-7" of a list of ranks such as those of [NodeRanks].
func RanksText(ranks string) string { return record.RanksText(ranks) }

// RankList is "rank 8" or "ranks 0,1 and 3 more".
func RankList(ranks []int, more int) string { return record.RankList(ranks, more) }

// ExitStatus is how a worker ended, for people: "exit 1" or "killed by SIGKILL".
func ExitStatus(code int, signal Signal) string { return record.ExitStatus(code, signal) }

// Unknown is a rank or size that the launcher does not provide.
const Unknown = record.Unknown

// MaxSlots is the maximum number of workers of an agent: their outcome is one value.
const MaxSlots = record.MaxSlots

// Unplaced is the task of an agent without a launcher that runs so many workers.
func Unplaced(slots int) []Task { return record.Unplaced(slots) }

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
func Compare(members []Member) []Comparison { return record.Compare(members) }

// What agents ask each other, see Session.Ask.
type (
	Question = questions.Question
	Answer   = questions.Answer
	Peer     = questions.Peer
	// BusyError is why a question was not asked: another one was being answered all the time.
	BusyError = questions.BusyError
)

// MaxAnswer is the maximum size of an answer in the store, in bytes, and MaxAnswers that of all
// answers to a question.
const (
	MaxAnswer  = questions.MaxAnswer
	MaxAnswers = questions.MaxAnswers
)

// The keys of all jobs begin with DefaultPrefix, unless there is another prefix, and then Root.
const (
	DefaultPrefix = keys.DefaultPrefix
	Root          = keys.Root
)

// CheckName rejects what may be written in several ways if it is taken for a path: "//", and "."
// and ".." between slashes. It is for names of jobs and prefixes of keys that a user gives.
func CheckName(name string) error { return keys.CheckName(name) }
