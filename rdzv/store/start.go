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
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// quotaBytes limits the database of a job: 4096 agents with their seats and outcomes use about 6
// MB, answers to questions at most rdzv.MaxAnswers. bbolt maps ten times as much memory.
const quotaBytes = 256 << 20

// maxStreams limits the streams of a connection, and the goroutines that serve them. An agent has
// one for its presence, one for its watches, and one for each request.
const maxStreams = 100

// smallSegments makes etcd's write-ahead log allocate segments of 1 MB instead of two of 64 MB,
// which take 15 ms and, if the directory is on a tmpfs, 128 MB of memory. The variable is etcd's
// own; etcd reads it only at the start of a server.
var smallSegments = sync.OnceFunc(func() { wal.SegmentSizeBytes = segment })

// startEtcd starts a single member in dir and returns when it is the leader.
func startEtcd(ctx context.Context, dir string, shared bool, f fatalErrors) (*embed.Etcd, error) {
	smallSegments()
	c := config(dir, f)
	if shared {
		share(c)
	}
	e, err := embed.StartEtcd(c)
	if err != nil {
		return nil, err
	}
	if err = reserve(dir); err == nil {
		err = elect(ctx, e)
	}
	if err != nil {
		e.Server.Stop()
		e.Close()
		return nil, err
	}
	return e, nil
}

func config(dir string, f fatalErrors) *embed.Config {
	c := embed.NewConfig()
	c.Name = "rdzv"
	c.Dir = dir
	c.ListenPeerUrls = nil
	c.ListenClientUrls = nil
	// etcd requires a client URL; it is never used.
	c.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: "rdzv.invalid:1"}}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.EnableGRPCGateway = false
	c.QuotaBackendBytes = quotaBytes
	c.MaxConcurrentStreams = maxStreams
	c.UnsafeNoFsync = true // the files never outlive this process
	// Fewer wake-ups: a single member sends no heartbeats, and no other process reads the file.
	c.TickMs, c.ElectionMs = 500, 5000
	c.BackendBatchInterval = 5 * time.Second
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(
		zap.New(zapcore.NewNopCore(), zap.WithPanicHook(f), zap.WithFatalHook(f)))
	return c
}

// share changes what is different in a shared store. Its agents have leases, of which etcd makes
// none shorter than 1.5 election timeouts, and it outlives the history of its jobs. An agent that
// was disconnected for longer than the history reads the keys again.
func share(c *embed.Config) {
	c.TickMs, c.ElectionMs = 100, 1000
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModePeriodic, "5m"
	c.QuotaBackendBytes = 2 * quotaBytes
}

// elect makes the only member the leader at once. Otherwise it would wait for its election timer, 5
// s or more, although no other member can win. It sends itself the message by which a leader makes
// its chosen successor start an election (MsgTimeoutNow). The election timer still runs, so that
// nothing depends on this.
func elect(ctx context.Context, e *embed.Etcd) error {
	id := uint64(e.Server.MemberID())
	timeoutNow := raftpb.MsgTimeoutNow
	retry := time.NewTicker(500 * time.Microsecond)
	defer retry.Stop()
	for e.Server.Leader() == 0 {
		message := &raftpb.Message{Type: &timeoutNow, From: &id, To: &id}
		if err := e.Server.Process(ctx, message); err != nil {
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
