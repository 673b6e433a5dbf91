package rdzv_test

import (
	"context"
	"fmt"
	"os"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv"
	"rdzv/rdzv/store"
)

// Two agents join a job and receive their ranks. The worker of one of them fails, and both agents
// learn of it. Here they share a client; usually each agent connects with [rdzv.Dial].
func ExampleJoin() {
	ctx := context.Background()
	s, err := store.Start(ctx, store.Config{Dir: os.TempDir()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	leader, err := rdzv.NewLeader(ctx, s.Client(), rdzv.LeaderConfig{Job: "demo", Tasks: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	var all sync.WaitGroup
	all.Go(func() { leader.Run(ctx) })
	for rank := range 2 {
		all.Go(func() {
			if err := runAgent(ctx, s.Client(), rank); err != nil {
				fmt.Println(err)
			}
		})
	}
	all.Wait()
	// Unordered output:
	// agent 0: rank 1 on localhost failed first: exit 3
	// agent 1: rank 1 on localhost failed first: exit 3
}

func runAgent(ctx context.Context, client *clientv3.Client, rank int) error {
	self := rdzv.Member{
		ID: fmt.Sprint("agent-", rank), Host: "localhost", MasterPort: 29500,
		Tasks:     []rdzv.Task{{Rank: rank, LocalRank: rdzv.Unknown, Slots: 1}},
		LocalSize: rdzv.Unknown, NodeRank: rdzv.Unknown,
	}
	session, err := rdzv.Join(ctx, client, rdzv.Config{Job: "demo", Self: self})
	if err != nil {
		return err
	}
	var workers []rdzv.Worker
	world, err := session.World(ctx)
	switch {
	case err != nil: // the job has ended before this agent started its worker
	case rank == 1:
		workers = []rdzv.Worker{{Rank: world.Seat.First(), Code: 3}}
		if err := session.Fail(ctx, workers[0]); err != nil {
			return err
		}
	default:
		<-session.Context().Done()
		workers = []rdzv.Worker{{Rank: world.Seat.First(), Stopped: true}}
	}
	if err := session.Settle(ctx, workers); err != nil {
		return err
	}
	summary, err := session.Leave(ctx)
	fmt.Printf("agent %d: %v\n", rank, summary.Verdict)
	return err
}
