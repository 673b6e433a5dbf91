package integration

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// jobPrefix is that of all keys of jobs.
const jobPrefix = "/rdzv/"

// A history has all changes of keys of jobs, in the order of the store.
type history struct {
	mu     sync.Mutex
	events []*clientv3.Event
	next   int64 // revision
	err    error // why it is not complete
}

// record records the history until the test ends.
func (e *etcd) record() *history {
	e.t.Helper()
	h := &history{next: 1}
	ctx, cancel := context.WithCancel(context.Background())
	var recording sync.WaitGroup
	recording.Go(func() {
		for ctx.Err() == nil && h.err == nil { // a member that is restarted may end a watch
			from := clientv3.WithRev(h.next)
			for response := range e.admin.Watch(ctx, jobPrefix, clientv3.WithPrefix(), from) {
				h.add(response)
			}
			_, _ = e.admin.Get(ctx, jobPrefix) // waits until the cluster answers
		}
	})
	e.t.Cleanup(func() {
		cancel()
		recording.Wait()
		if h.err != nil {
			e.t.Errorf("the history is not complete: %v", h.err)
		}
	})
	return h
}

func (h *history) add(response clientv3.WatchResponse) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, response.Events...)
	if n := len(response.Events); n > 0 {
		h.next = response.Events[n-1].Kv.ModRevision + 1
	}
	if errors.Is(response.Err(), rpctypes.ErrCompacted) {
		h.err = response.Err()
	}
}

// changes are those of keys that contain a text.
func (h *history) changes(text string) (found []*clientv3.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, event := range h.events {
		if strings.Contains(string(event.Kv.Key), text) {
			found = append(found, event)
		}
	}
	return found
}

// catchUp waits until the history has all that has happened so far, and returns the revision.
func (e *etcd) catchUp() int64 {
	e.t.Helper()
	const mark = jobPrefix + "mark"
	var revision int64
	e.do(func(ctx context.Context) error {
		put, err1 := e.admin.Put(ctx, mark, "")
		_, err2 := e.admin.Delete(ctx, mark)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		revision = put.Header.Revision
		return nil
	})
	if !eventually(waitLimit, func() bool {
		marks := e.history.changes(mark)
		return len(marks) > 0 && marks[len(marks)-1].Kv.ModRevision > revision
	}) {
		e.t.Fatal("the watch of the history delivers nothing")
	}
	return revision
}

// onceOnly are the keys that leaders and agents write once in each run.
var onceOnly = []string{
	"/seat/", "/signal/world", "/signal/exports", "/signal/start", "/signal/verdict", "/signal/settled",
}

// checkWrites checks that in a run of a job each of onceOnly was written once, and that an agent
// that was removed has written nothing afterwards, unless it has registered again before it was
// lost. Its member is not on its lease: it may be written before that.
func (e *etcd) checkWrites(job string) {
	e.t.Helper()
	e.catchUp()
	gone, lost, written := map[string]int64{}, map[string]int64{}, map[string]bool{}
	for _, event := range e.history.changes("/" + job + "/") {
		key, agent := string(event.Kv.Key), ownKey(string(event.Kv.Key))
		isAgent := strings.Contains(key, "/agent/")
		if isAgent && event.Type == clientv3.EventTypeDelete {
			gone[agent] = event.Kv.ModRevision
		}
		if event.Type == clientv3.EventTypeDelete {
			continue
		}
		if _, id, found := strings.Cut(key, "/lost/"); found {
			lost[id] = event.Kv.ModRevision
		}
		if isAgent && lost[agent] == 0 {
			delete(gone, agent)
		}
		at := gone[agent]
		if strings.Contains(key, "/member/") {
			at = lost[agent]
		}
		if at > 0 && agent != "" {
			e.t.Errorf("an agent has written %q in revision %d, but was removed in revision %d", key,
				event.Kv.ModRevision, at)
		}
		for _, once := range onceOnly {
			if strings.Contains(key, once) && written[key] {
				e.t.Errorf("%q was written again in revision %d: %s", key, event.Kv.ModRevision,
					event.Kv.Value)
			}
		}
		written[key] = true
	}
	if len(written) == 0 {
		e.t.Errorf("nothing was written for job %q", job)
	}
}

// ownKey is the ID of the agent that writes a key; "" if any agent may.
func ownKey(key string) string {
	for _, kind := range []string{"/agent/", "/member/", "/progress/", "/ready/"} {
		if _, agent, found := strings.Cut(key, kind); found {
			return agent
		}
	}
	return ""
}

// keysLeft are the keys of jobs that are left when the leases of agents have expired.
func (e *etcd) keysLeft() []string { return e.keysLeftAfter(10 * etcdPeerTimeout) }

// jobLease is how long the keys of a job exist that nobody could remove: longer than its workers can
// run, which end 13 s after the store timeout.
func jobLease(peerTimeout, storeTimeout time.Duration) time.Duration {
	return max(2*peerTimeout+30*time.Second, (storeTimeout+13*time.Second)*5/2)
}

// keysLeftAfter are those that are left after a time. A leader of the cluster that is new extends
// leases.
func (e *etcd) keysLeftAfter(d time.Duration) (left []string) {
	e.t.Helper()
	eventually(d, func() bool {
		left = nil
		for _, kv := range e.get(clientv3.WithKeysOnly()) {
			left = append(left, string(kv.Key))
		}
		return len(left) == 0
	})
	return left
}

// get returns the keys of jobs.
func (e *etcd) get(options ...clientv3.OpOption) (kvs []*mvccpb.KeyValue) {
	e.t.Helper()
	e.do(func(ctx context.Context) error {
		found, err := e.admin.Get(ctx, jobPrefix, append(options, clientv3.WithPrefix())...)
		if err == nil {
			kvs = found.Kvs
		}
		return err
	})
	return kvs
}
