package agent

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdzv/rdzv"
	"rdzv/rdzv/meet"
	"rdzv/wrap"
)

// The JSON form of events that contain values of package rdzv is that of testdata/events.jsonl.
func TestMarshalEvent(t *testing.T) {
	examples := strings.Join(exampleLines(t), "\n") + "\n"
	at := time.Date(2026, 1, 2, 4, 4, 5, 678_000_000, time.FixedZone("CET", 3600))
	failed := rdzv.Worker{
		Rank: 2, PID: 4711, Code: 1, RanFor: rdzv.Seconds(12500 * time.Millisecond),
		Text: "ValueError: no such data set: train-0002",
	}
	roster := rdzv.Roster{Joined: 3, Tasks: 4, Launched: true, Missing: []int{3},
		Hosts: []string{"node1", "node2"}, Absent: []string{"node3"}}
	verdict := rdzv.Verdict{
		Kind: rdzv.Failed, By: "4d1f0c73a0e29b58", Host: "node2", PID: 4711, Rank: 2, Code: 1,
		RanFor: failed.RanFor,
		Text:   failed.Text,
	}
	missing := rdzv.Problem{
		Kind: rdzv.ProgramMissing, Text: `cannot run "train.sh": not found in PATH "/usr/bin"`,
	}
	unready := rdzv.Verdict{
		Kind: rdzv.Unready, Rank: rdzv.Unknown, LocalRank: rdzv.Unknown,
		Problems: []rdzv.NodeProblem{{Problem: missing, Hosts: []string{"node2"}}},
	}
	for _, e := range []Event{
		Searching{Waited: time.Second, Tried: []meet.Answer{
			{Name: "node1", Addr: netip.MustParseAddrPort("10.77.0.11:29621"),
				Err: syscall.ECONNREFUSED},
			{Name: "node1", Addr: netip.MustParseAddrPort("10.77.0.11:29702"),
				Err: syscall.ECONNREFUSED},
		}},
		NoPeerYet{Waited: rdzv.Seconds(3 * time.Second), NoBeacon: true, Store: netip.MustParseAddr("10.77.0.11"),
			JoinLine: "RDZV_JOIN=secret"},
		Waiting{Roster: roster, Waited: rdzv.Seconds(5 * time.Second)},
		WorldAgreed{World: rdzv.World{
			Job: "train", Size: 16, Agents: 2, Nodes: 2, StoreHost: "node1",
			MasterAddr: "10.77.0.11", MasterPort: 41235,
			Layout: []rdzv.NodeRanks{{Host: "node1", Ranks: "0-7"}, {Host: "node2", Ranks: "8-15"}},
			Seat:   rdzv.Seat{Tasks: []rdzv.SeatTask{{Rank: 8, Slots: 8}}, LocalSize: 8, Node: 1},
		}},
		NodesDiffer{Comparison: rdzv.Comparison{Fact: "python", Groups: []rdzv.Group{
			{Value: "3.11", Hosts: []string{"node1", "node2"}},
			{Value: "3.9", Hosts: []string{"node3"}},
		}}},
		WorkerExited{failed},
		InitProgress{rdzv.InitProgress{
			Ranks: 8, Reached: 7, Missing: []rdzv.NodeRanks{{Host: "node2", Ranks: "5"}},
			Host:  "node2",
			First: new(5), Python: 4711, Waited: rdzv.Seconds(10 * time.Second),
		}},
		InitProgress{rdzv.InitProgress{Ranks: 8, Reached: 8, Waited: rdzv.Seconds(34 * time.Second)}},
		Stragglers{
			After: rdzv.Seconds(10 * time.Second), Running: []rdzv.Straggler{{Rank: 3, Host: "node2"}},
		},
		JobEnded{Job: "train", Verdict: &verdict, Hosting: true, Leads: true, Announce: true,
			StoreHost: "node1"},
		JobEnded{
			Job: "train", Verdict: &unready, Hosting: true, Leads: true, Announce: true, StoreRank: rdzv.Unknown,
		},
		JobEnded{Job: "train", StoreHost: "node1"},
		JobEnded{
			Job: "train", Announce: true, StoreRank: rdzv.Unknown, Etcd: "https://etcd1:2379",
			StoreLost: "lost the store: the store has not answered for 1m0s",
		},
		Settling{
			Running: []WorkerStarted{{PID: 4711}}, Left: []wrap.Process{{PID: 4713, Name: "sleep"}},
			Wait: rdzv.Seconds(10 * time.Second),
		},
		DumpingStacks{Workers: []WorkerStarted{{PID: 4711}}, IgnoresTerm: true},
		LogLost{
			Rank: 3, File: "logs/train-20260102T030400.123/attempt-0/rank-00003.log",
			Err: syscall.ENOSPC, Text: syscall.ENOSPC.Error(), Bytes: 4096,
		},
		OutputLost{
			Rank: 3, Stream: "stdout", Err: syscall.ENOSPC, Text: syscall.ENOSPC.Error(), Bytes: 4096,
		},
		FailureReported{Failure{
			Job: "train", Program: []string{"python3", "main.py"}, Rank: 2, WorldSize: 4,
			Host: "node2", PID: 4711, Code: 1, Took: failed.RanFor, Message: failed.Text,
			Stderr: []string{"Traceback (most recent call last):", failed.Text},
			Others: []rdzv.FailedWorker{{Host: "node2", Worker: rdzv.Worker{
				Rank: 3, LocalRank: 1, PID: 4712, Code: 139, Signal: rdzv.Signal(syscall.SIGSEGV),
				RanFor: rdzv.Seconds(12600 * time.Millisecond),
			}}},
		}},
	} {
		line, err := MarshalEvent(at, e)
		if err != nil || !strings.Contains(examples, string(line)+"\n") {
			t.Errorf("%s: testdata/events.jsonl does not have the JSON form\n%s, %v", e.Type(), line, err)
		}
	}
}
