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
			j := startPlain(t)
			all := j.leasedAgents(3, 3)
			j.worlds(all)
			for i, s := range all[:before] {
				j.settle(s, succeeded(i))
			}
			j.fill()
			if err := all[2].Progress(j.ctx, []Worker{succeeded(2)}); err == nil {
				t.Error("a full store has accepted the progress")
			}
			for i, s := range all[before:] {
				j.settle(s, succeeded(i+before))
			}
			each(all, func(i int, s *Session) {
				sum := j.leave(s)
				if v := sum.Verdict; v == nil || v.Kind != Done || !sum.Settled {
					t.Errorf("agent %d: %+v, verdict %+v", i, sum, v)
				}
			})
			j.wantNothingLeft()
		})
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
