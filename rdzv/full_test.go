package rdzv

import (
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// No agent waits for a verdict that the store does not accept.
func TestFullStore(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.leasedAgents(3, 3)
	p.worlds(all)
	maintenance := etcdserverpb.NewMaintenanceClient(p.admin.ActiveConnection())
	if _, err := maintenance.Alarm(p.ctx, &etcdserverpb.AlarmRequest{
		Action:   etcdserverpb.AlarmRequest_ACTIVATE,
		MemberID: uint64(p.etcd.Server.MemberID()), Alarm: etcdserverpb.AlarmType_NOSPACE,
	}); err != nil {
		t.Fatal(err)
	}
	if err := all[2].Fail(p.ctx, Worker{Rank: 2, Code: 7}); err == nil {
		t.Fatal("a full store has accepted a verdict")
	}
	for _, i := range []int{2, 0, 1} {
		if cause := p.ended(all[i]); !errors.Is(cause, ErrStoreLost) {
			t.Errorf("agent %d: %v", i, cause)
		}
		if _, err := all[i].Leave(p.ctx); !errors.Is(err, ErrStoreLost) {
			t.Errorf("agent %d: %v", i, err)
		}
	}
}
