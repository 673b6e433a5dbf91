package store

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
)

// quotaBytes bounds what a job can put into its store: 4096 agents with their
// seats and outcomes take about 6 MB. bbolt maps ten times as much memory.
const quotaBytes = 256 << 20

// smallSegments makes etcd's write-ahead log allocate 1 MB at a time instead of
// 64 MB twice, which costs 15 ms and 128 MB of memory where the directory is on
// a tmpfs. The variable is etcd's own and read only at a server's start.
var smallSegments = sync.OnceFunc(func() { wal.SegmentSizeBytes = segment })

const segment = 1 << 20

// startEtcd starts a single member in dir and returns when it leads.
func startEtcd(ctx context.Context, dir string, f failure) (*embed.Etcd, error) {
	smallSegments()
	e, err := embed.StartEtcd(config(dir, f))
	if err != nil {
		return nil, err
	}
	if err = reserve(dir); err == nil {
		err = lead(ctx, e)
	}
	if err != nil {
		e.Server.Stop()
		e.Close()
		return nil, err
	}
	return e, nil
}

func config(dir string, f failure) *embed.Config {
	c := embed.NewConfig()
	c.Name = "rdzv"
	c.Dir = dir
	c.ListenPeerUrls = nil
	c.ListenClientUrls = nil
	c.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "rdzv.invalid:1"}} // etcd wants one; nobody dials it
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.EnableGRPCGateway = false
	c.QuotaBackendBytes = quotaBytes
	c.UnsafeNoFsync = true                   // the files never outlive this process
	c.TickMs, c.ElectionMs = 500, 5000       // a lone member has nobody to send heartbeats to, and etcd would wake up for each
	c.BackendBatchInterval = 5 * time.Second // for the same reason: nobody reads the file
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(f.logger())
	return c
}

// lead makes the only member the leader now. Left alone it would wait for its
// election timer, 5 s and more, although nobody else could win; the message that a
// leader sends to its chosen successor, sent to itself, ends that wait. The
// timer still runs, so that this saves time and nothing depends on it.
func lead(ctx context.Context, e *embed.Etcd) error {
	id := uint64(e.Server.MemberID())
	kick := raftpb.MsgTimeoutNow
	retry := time.NewTicker(500 * time.Microsecond)
	defer retry.Stop()
	for e.Server.Leader() == 0 {
		if err := e.Server.Process(ctx, &raftpb.Message{Type: &kick, From: &id, To: &id}); err != nil {
			return cmp.Or(context.Cause(ctx), fmt.Errorf("cannot elect the only member: %w", err))
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case <-e.Server.ReadyNotify():
		return nil
	case err := <-e.Err():
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
