package inspect

import (
	"errors"
	"testing"

	"rdzv/rdzv/agent/internal/query"
)

// A job that has not answered has its user, too, in the report on the jobs of all users.
func TestUserOfJobWithoutAnswer(t *testing.T) {
	found := query.Found{Jobs: []query.JobReply{{Job: "x", UID: 1000, Err: errors.New("closed")}}}
	if j := reportOn(found, query.AnyUser, nil).Jobs[0]; j.UID == nil || *j.UID != 1000 {
		t.Errorf("all users: %+v", j)
	}
	if j := reportOn(found, 1000, nil).Jobs[0]; j.UID != nil || j.Text != "closed" {
		t.Errorf("one user: %+v", j)
	}
}
