// Command embed-world lets workers agree on a world with package rdzv alone: no launcher, no
// processes to start, and an embedded etcd as the store. Here the workers are goroutines of one
// process.
//
//	embed-world             all workers succeed
//	embed-world -fail 1     rank 1 fails, and all learn of it
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"rdzv/rdzv"
	"rdzv/rdzv/store"
)

const members = 3

func main() {
	fail := flag.Int("fail", -1, "rank of the worker that fails")
	flag.Parse()
	if err := run(context.Background(), *fail); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run hosts the store, leads the job, and takes part in it with all members.
func run(ctx context.Context, fail int) error {
	// The store has no listener of its own. To let other processes in, call Serve with a listener that
	// authenticates them, and Leader.AgentEnded; they connect with rdzv.Dial.
	s, err := store.Start(ctx, store.Config{Dir: os.TempDir()})
	if err != nil {
		return err
	}
	end := sync.OnceFunc(func() { s.Close() })
	defer end()
	leader, err := rdzv.NewLeader(ctx, s.Client(), rdzv.LeaderConfig{Job: "demo", Tasks: members})
	if err != nil {
		return err
	}
	errs := make(chan error, members)
	for i := range members {
		go func() { errs <- member(ctx, s.Client(), fmt.Sprint("member-", i), fail) }()
	}
	if err = leader.Run(ctx); err != nil {
		end() // nobody leads any more: the members see that the store is lost
	}
	for range members {
		err = errors.Join(err, <-errs)
	}
	return err
}

// member takes part in the job with one worker.
func member(ctx context.Context, client *clientv3.Client, id string, fail int) error {
	session, err := rdzv.Join(ctx, client, rdzv.Config{Job: "demo", Self: rdzv.Member{
		ID: id, Host: "localhost", PID: os.Getpid(), MasterPort: 29500,
		// The leader chooses the ranks.
		Tasks: rdzv.Unplaced(1), LocalSize: rdzv.Unknown, NodeRank: rdzv.Unknown,
	}})
	if err != nil {
		return err
	}
	// From here on Settle and Leave must be called whatever happens: the others wait for this member.
	var ended []rdzv.Worker
	world, err := session.World(ctx)
	if err == nil { // else the job has ended before its world reached this member
		ended = append(ended, work(session.Context(), world, fail))
	}
	if err := session.Settle(ctx, ended); err != nil { // a failure among them ends the job
		return err
	}
	summary, err := session.Leave(ctx) // when all have settled
	if err != nil {
		return err
	}
	if summary.Verdict.Kind != rdzv.Done {
		return fmt.Errorf("%s: %w", id, summary.Verdict)
	}
	fmt.Printf("%s: rank %d of %d: %v\n", id, world.Seat.First(), world.Size, summary.Verdict)
	return nil
}

// work is one worker. Its context ends with the job.
func work(ctx context.Context, world rdzv.World, fail int) rdzv.Worker {
	w := rdzv.Worker{Rank: world.Seat.RankOf(0), LocalRank: world.Seat.LocalRankOf(0)}
	switch {
	case w.Rank == fail:
		w.Code, w.Text = 3, "no such data set"
	case fail >= 0:
		<-ctx.Done() // it would work on, and is told to stop because another one has failed
		w.Code, w.Stopped = 1, true
	}
	return w
}
