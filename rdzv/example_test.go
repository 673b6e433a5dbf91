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

// Two agents join a job and receive their ranks. A worker of one of them fails, and both agents
// learn of it. Here they share a client; usually each agent connects with [rdzv.Dial].
func ExampleJoin() {
	ctx := context.Background()
	s, err := store.Start(ctx, store.Config{Dir: os.TempDir()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	leader, err := rdzv.NewLeader(ctx, s.Client(), rdzv.LeaderConfig{Job: "demo", Agents: 2})
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
	// rank 0 of 2: rank 1 on localhost failed first: exit 3
	// rank 1 of 2: rank 1 on localhost failed first: exit 3
}

func runAgent(ctx context.Context, client *clientv3.Client, rank int) error {
	self := rdzv.Member{
		ID: fmt.Sprint("agent-", rank), Host: "localhost", Rank: rank,
		LocalRank: rdzv.Unknown, LocalSize: rdzv.Unknown, NodeRank: rdzv.Unknown,
		Slots: 1, MasterPort: 29500,
	}
	session, err := rdzv.Join(ctx, client, rdzv.Config{Job: "demo", Self: self})
	if err != nil {
		return err
	}
	world, err := session.World(ctx)
	if err != nil {
		return err
	}
	worker := rdzv.Worker{Rank: world.Seat.Rank, Stopped: true}
	if rank == 1 {
		worker = rdzv.Worker{Rank: world.Seat.Rank, Code: 3}
		if err := session.Fail(ctx, worker); err != nil {
			return err
		}
	}
	<-session.Context().Done()
	if err := session.Settle(ctx, []rdzv.Worker{worker}); err != nil {
		return err
	}
	summary, err := session.Leave(ctx)
	fmt.Printf("rank %d of %d: %v\n", world.Seat.Rank, world.Size, summary.Verdict)
	return err
}
