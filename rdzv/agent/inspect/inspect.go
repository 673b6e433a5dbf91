// Package inspect asks running jobs of this user what they are doing: what each worker does, and
// where it is. It connects to an agent of each job on this host, which asks the others.
//
// What an agent answers is made by package agent, how it is reached is package query, and what the
// reports say is in packages status and stacks.
package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"rdzv/internal/procfs"
	"rdzv/rdzv"
	"rdzv/rdzv/agent/internal/query"
	"rdzv/rdzv/stacks"
	"rdzv/rdzv/status"
)

// The kinds of questions: what an agent and its workers are doing, and where its workers are.
// StopQuestion asks one agent to end the job, and has as its argument who wants that.
const (
	StatusQuestion = "status"
	StacksQuestion = "stacks"
	StopQuestion   = "stop"
)

// Interval is how long agents measure CPU use, AnswerTimeout how long they may take to answer a
// question, and timeout how long a job may take in all: its agents may have to wait for the answers
// to another question, and the one that is asked for the store.
const (
	Interval      = time.Second
	AnswerTimeout = Interval + 2*time.Second
	timeout       = AnswerTimeout + 6*time.Second
)

// Status asks the jobs of this user that have agents on this host, or those that a word names, how
// they are: the name of the job, or its only name that begins so. It takes 9 s at most.
func Status(ctx context.Context, job string) (status.Report, error) {
	return statusOf(ctx, os.Geteuid(), job)
}

// StatusOfAllUsers is like Status for the jobs of all users, and only root gets it. Each job has
// its user.
func StatusOfAllUsers(ctx context.Context, job string) (status.Report, error) {
	return statusOf(ctx, query.AnyUser, job)
}

func statusOf(ctx context.Context, uid int, job string) (status.Report, error) {
	found, err := askJobs(ctx, uid, job, rdzv.Question{Kind: StatusQuestion})
	if err != nil {
		return status.Report{}, err
	}
	return reportOn(found, uid, func(reply query.JobReply, o Observation, r *status.Report) {
		j := status.Of(reply.Job, o.Answers, o.Missing, o.Alone)
		j.Name = reply.Shown
		j.UID = userOf(reply, uid)
		r.Add(j)
	}), nil
}

// userOf is the user of a job if those of all users were asked, nil if only those of one.
func userOf(reply query.JobReply, asked int) *int {
	if asked != query.AnyUser {
		return nil
	}
	return &reply.UID
}

// Stop ends the jobs of this user that this word names, see Status, and that have agents on this
// host. by says to all nodes who has ended them: "rdzv stop on node1". It takes 9 s at most, and
// does not wait until the workers have ended.
func Stop(ctx context.Context, job, by string) (status.Report, error) {
	question, uid := rdzv.Question{Kind: StopQuestion, Arg: by}, os.Geteuid()
	found, err := askJobs(ctx, uid, job, question)
	if err != nil {
		return status.Report{}, err
	}
	return reportOn(found, uid, func(reply query.JobReply, o Observation, r *status.Report) {
		r.Add(status.Job{Job: reply.Job, Name: reply.Shown, State: status.Ending})
	}), nil
}

// Names are the jobs of this user that have agents on this host, without their ranks, and those of
// them that a word names.
func Names(ctx context.Context, job string) (status.Report, error) {
	uid := os.Geteuid()
	found, err := askJobs(ctx, uid, job, rdzv.Question{})
	return reportOn(found, uid, nil), err
}

// reportOn is a report of what was found when the jobs of user uid were asked, to which add adds
// those that have answered.
func reportOn(
	found query.Found, uid int, add func(reply query.JobReply, o Observation, r *status.Report),
) status.Report {
	r := status.Report{
		Jobs: []status.Job{}, Names: found.Names, Wanted: found.Wanted, Silent: found.Silent,
		Others: found.Others,
	}
	for _, reply := range found.Jobs {
		var o Observation
		if err := cmp.Or(reply.Err, json.Unmarshal(reply.Value, &o)); err != nil {
			r.Jobs = append(r.Jobs,
				status.Job{Job: reply.Job, Name: reply.Shown, UID: userOf(reply, uid), Text: err.Error()})
		} else {
			add(reply, o, &r)
		}
	}
	return r
}

// Stacks asks the same jobs as Status where their workers are. The second result is what else is
// known of them, without their ranks. It takes 9 s at most.
func Stacks(ctx context.Context, job string) ([]stacks.Report, status.Report, error) {
	uid := os.Geteuid()
	found, err := askJobs(ctx, uid, job, rdzv.Question{Kind: StacksQuestion})
	if err != nil {
		return nil, status.Report{}, err
	}
	var reports []stacks.Report
	r := reportOn(found, uid, func(reply query.JobReply, o Observation, r *status.Report) {
		r.Add(status.Job{Job: reply.Job, Name: reply.Shown, State: status.Running})
		at, n := o.Stacks(reply.Shown), len(reports)
		if at.Ranks > 0 || n == 0 || reports[n-1].Job != reply.Shown { // not one more that has not joined
			reports = append(reports, at)
		}
	})
	return reports, r, nil
}

// Stacks is the report on the workers of a job that has answered a StacksQuestion.
func (o Observation) Stacks(job string) stacks.Report {
	var nodes []stacks.Node
	for _, a := range o.Answers {
		n := stacks.Node{Host: a.Host, Problem: a.Error}
		if a.Error == "" && json.Unmarshal(a.Value, &n) != nil {
			n.Problem = "its answer cannot be read"
		}
		nodes = append(nodes, n)
	}
	for _, p := range o.Missing {
		n := stacks.Node{Host: p.Host, Problem: fmt.Sprintf("the agent (pid %d) has not answered", p.PID)}
		if p.Host == "" {
			n = stacks.Node{Host: "another node", Problem: "the agent has not answered"}
		}
		nodes = append(nodes, n)
	}
	if o.Alone != "" {
		nodes[0].Problem = "only this agent has answered: " + o.Alone
	}
	return stacks.Of(job, nodes)
}

// askJobs asks all agents of each job of a user that has an agent on this host, or of those that
// a word names. The values of the replies are Observations.
func askJobs(ctx context.Context, uid int, job string, q rdzv.Question) (query.Found, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := query.Request{Kind: q.Kind, Arg: q.Arg}
	return query.AskJobs(ctx, procfs.System, uid, job, r)
}

// Observation has the answers of the agents of a job to one question. The agent that another
// process asks collects them and sends them as JSON, on behalf of all.
type Observation struct {
	Answers []rdzv.Answer `json:"answers"`
	Missing []rdzv.Peer   `json:"missing,omitempty"` // have not answered
	// Alone is why the only answer is that of the agent that was asked; "" if all were.
	Alone string `json:"alone,omitempty"`
}
