package query

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Job identifies the job of an agent, and the agent in it.
type Job struct {
	Name string `json:"job"`
	ID   string `json:"id,omitempty"` // "" before it has joined
}

// kindJob is the Request.Kind by which an agent tells its Job.
const kindJob = "job"

// jobAnswer is an answer on behalf of a job, and the IDs of the agents that it is about.
type jobAnswer struct {
	Members []string `json:"members,omitempty"`
	Value   []byte   `json:"value"`
}

// Found are the jobs of this user that have agents on this host, and other agents.
type Found struct {
	Jobs   []JobReply
	Names  []string // of all jobs, also if one was asked for
	Silent []int    // PIDs of agents that have not answered
	Others []int    // users of agents that are not this user's, one for each agent
}

// JobReply is what an agent has answered on behalf of its job.
type JobReply struct {
	Job   string
	Value []byte
	Err   error // why there is no value
}

// identifyTimeout is how long an agent may take to tell which job is its own.
const identifyTimeout = time.Second

// AskJobs asks one agent of each job of a user something, until ctx ends. If name is not "" it asks
// only the jobs of that name. A request without a kind asks nothing: it only finds the jobs.
func AskJobs(
	ctx context.Context, proc fs.FS, uid int, name string, r Request,
) (found Found, err error) {
	short, cancel := context.WithTimeout(ctx, identifyTimeout)
	defer cancel()
	agents, err := find(short, proc, uid, Request{Kind: kindJob})
	if err != nil {
		return found, err
	}
	found.Others = agents.others
	byName := map[string][]identified{}
	for _, a := range agents.own {
		var job Job
		if a.err != nil || json.Unmarshal(a.value, &job) != nil {
			found.Silent = append(found.Silent, int(a.peer.Pid))
		} else {
			byName[job.Name] = append(byName[job.Name], identified{job, a.addr})
		}
	}
	found.Names = slices.Sorted(maps.Keys(byName))
	if r.Kind == "" {
		return found, nil
	}
	unwanted := func(job string) bool { return name != "" && name != job }
	names := slices.DeleteFunc(slices.Clone(found.Names), unwanted)
	replies := make([][]JobReply, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { replies[i] = askEach(ctx, byName[name], uid, r) })
	}
	all.Wait()
	found.Jobs = slices.Concat(replies...)
	return found, nil
}

// identified is an agent that has told its job.
type identified struct {
	Job
	addr string
}

// askEach asks agents of jobs that have the same name, one after another, until every agent has
// answered or is one of those that an answer is about.
func askEach(ctx context.Context, agents []identified, uid int, r Request) (
	replies []JobReply,
) {
	done := map[string]bool{} // IDs
	var failed error
	for _, a := range agents {
		if done[a.ID] {
			continue
		}
		var answer jobAnswer
		e := ask(ctx, a.addr, uid, r)
		if e.err == nil {
			e.err = json.Unmarshal(e.value, &answer)
		}
		if e.err != nil {
			ended := errors.Is(e.err, io.EOF) || errors.Is(e.err, syscall.ECONNRESET)
			if !ended {
				failed = e.err
			}
			continue
		}
		for _, id := range answer.Members {
			done[id] = true
		}
		replies = append(replies, JobReply{Job: a.Name, Value: answer.Value})
	}
	if replies == nil && failed != nil {
		replies = append(replies, JobReply{Job: agents[0].Name, Err: failed})
	}
	return replies
}
