package rdzv

import (
	"errors"
	"strconv"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// A job whose workers have all succeeded ends, although the store does not accept that, after two
// outcomes or none.
func TestSuccessInFullStore(t *testing.T) {
	t.Parallel()
	for _, before := range []int{0, 2} {
		t.Run(strconv.Itoa(before), func(t *testing.T) {
			t.Parallel()
			p := startPlain(t)
			all := p.leasedAgents(3, 3)
			p.worlds(all)
			for i, s := range all[:before] {
				p.settle(s, succeeded(i))
			}
			p.fill()
			if err := all[2].Progress(p.ctx, []Worker{succeeded(2)}); err == nil {
				t.Error("a full store has accepted the progress")
			}
			for i, s := range all[before:] {
				p.settle(s, succeeded(i+before))
			}
			each(all, func(i int, s *Session) {
				sum := p.leave(s)
				if v := sum.Verdict; v == nil || v.Kind != Done || !sum.Settled {
					t.Errorf("agent %d: %+v, verdict %+v", i, sum, v)
				}
			})
			p.wantNothingLeft()
		})
	}
}

// No agent waits for a verdict that the store does not accept.
func TestFullStore(t *testing.T) {
	t.Parallel()
	p := startPlain(t)
	all := p.leasedAgents(3, 3)
	p.worlds(all)
	p.fill()
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

// fill makes the store refuse values, as if its database were full.
func (p *plain) fill() {
	p.t.Helper()
	maintenance := etcdserverpb.NewMaintenanceClient(p.admin.ActiveConnection())
	if _, err := maintenance.Alarm(p.ctx, &etcdserverpb.AlarmRequest{
		Action:   etcdserverpb.AlarmRequest_ACTIVATE,
		MemberID: uint64(p.etcd.Server.MemberID()), Alarm: etcdserverpb.AlarmType_NOSPACE,
	}); err != nil {
		p.t.Fatal(err)
	}
}
