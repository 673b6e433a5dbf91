package rdzv

import (
	"errors"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// An agent whose workers have succeeded does not wait either if the store does not accept that: it
// says that the database is full.
func TestSuccessInFullStore(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.leasedAgents(3, 3)
	j.worlds(all)
	j.settle(all[0], succeeded(0))
	j.fill()
	for _, i := range []int{1, 2} {
		err := all[i].Settle(j.ctx, []Worker{succeeded(i)})
		if err == nil || !strings.Contains(err.Error(), "database space exceeded") {
			t.Errorf("agent %d: %v, want that the database is full", i, err)
		}
	}
	for _, i := range []int{1, 2, 0} { // agent 0 learns that the others have left
		if cause := j.ended(all[i]); !errors.Is(cause, ErrStoreLost) {
			t.Errorf("agent %d: %v", i, cause)
		}
		if _, err := all[i].Leave(j.ctx); !errors.Is(err, ErrStoreLost) {
			t.Errorf("agent %d: %v", i, err)
		}
	}
}

// No agent waits for a verdict that the store does not accept.
func TestFullStore(t *testing.T) {
	t.Parallel()
	j := startPlain(t)
	all := j.leasedAgents(3, 3)
	j.worlds(all)
	j.fill()
	if err := all[2].Fail(j.ctx, Worker{Rank: 2, Code: 7}); err == nil {
		t.Fatal("a full store has accepted a verdict")
	}
	for _, i := range []int{2, 0, 1} {
		if cause := j.ended(all[i]); !errors.Is(cause, ErrStoreLost) {
			t.Errorf("agent %d: %v", i, cause)
		}
		if _, err := all[i].Leave(j.ctx); !errors.Is(err, ErrStoreLost) {
			t.Errorf("agent %d: %v", i, err)
		}
	}
}

// fill makes the store refuse values, as if its database were full.
func (j *job) fill() {
	j.t.Helper()
	maintenance := etcdserverpb.NewMaintenanceClient(j.admin.ActiveConnection())
	if _, err := maintenance.Alarm(j.ctx, &etcdserverpb.AlarmRequest{
		Action:   etcdserverpb.AlarmRequest_ACTIVATE,
		MemberID: uint64(j.etcd.Server.MemberID()), Alarm: etcdserverpb.AlarmType_NOSPACE,
	}); err != nil {
		j.t.Fatal(err)
	}
}
