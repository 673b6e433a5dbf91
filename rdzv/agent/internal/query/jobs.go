package query

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Job identifies the job of an agent, and the agent in it.
type Job struct {
	Name  string `json:"job"`
	Label string `json:"label,omitempty"` // how its user calls it, such as the name of its script
	ID    string `json:"id,omitempty"`    // "" before it has joined
	Only  bool   `json:"only,omitempty"`  // the job has no other agent, and others may have its name
}

// kindJob is the Request.Kind by which an agent tells its Job.
const kindJob = "job"

// jobAnswer is an answer on behalf of a job, and the IDs of the agents that it is about.
type jobAnswer struct {
	Members []string        `json:"members,omitempty"`
	Value   json.RawMessage `json:"value"`
}

// Found are the jobs of this user that have agents on this host, and other agents.
type Found struct {
	Jobs   []JobReply
	Names  []string // as shown, of all jobs that have not ended, also if one was asked for
	Wanted []string // those of Names that were asked for
	Silent []int    // PIDs of agents that have not answered
	Others []int    // users of agents that are not this user's, one for each agent
}

// JobReply is the answer of one agent on behalf of its job. A job whose agents have not joined has
// several, because each of them answers for itself.
type JobReply struct {
	Job   string
	Shown string // the name that tells it from the other jobs of this host
	UID   int    // its user
	Value []byte // JSON
	Err   error  // why there is no value
}

// identifyTimeout is how long an agent may take to tell which job is its own.
const identifyTimeout = time.Second

// AskJobs asks one agent of each job of a user something, until ctx ends. If name is not "" it asks
// only those that are called so, see wanted. A request without a kind asks nothing: it only finds
// the jobs.
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
	byName := map[owned][]identified{}
	for _, a := range agents.own {
		var job Job
		if a.err != nil || json.Unmarshal(a.value, &job) != nil {
			found.Silent = append(found.Silent, int(a.peer.Pid))
		} else {
			user := owned{name: job.Name, uid: int(a.peer.Uid)}
			if job.Only {
				user.agent = a.addr
			}
			byName[user] = append(byName[user], identified{job, a.addr})
		}
	}
	all := shownJobs(byName)
	for _, job := range all {
		found.Names = append(found.Names, job.shown)
	}
	asked := wanted(all, name)
	for _, job := range asked {
		found.Wanted = append(found.Wanted, job.shown)
	}
	if r.Kind == "" {
		return found, nil
	}
	replies := make([][]JobReply, len(asked))
	var asking sync.WaitGroup
	for i, job := range asked {
		asking.Go(func() { replies[i] = askEach(ctx, byName[job.owned], job, r) })
	}
	asking.Wait()
	for i, job := range asked {
		if replies[i] == nil { // it has ended meanwhile
			at := slices.Index(found.Names, job.shown)
			found.Names = slices.Delete(found.Names, at, at+1)
		}
	}
	found.Jobs = slices.Concat(replies...)
	return found, nil
}

// owned identifies a job on this host: by its name, its user, and its agent if it has only one.
type owned struct {
	name  string
	uid   int
	agent string
}

// identified is an agent that has told its job.
type identified struct {
	Job
	addr string
}

// askEach asks agents of jobs that have the same name, one after another, until every agent has
// answered or is one of those that an answer is about. There are no replies if all have ended.
func askEach(ctx context.Context, agents []identified, job shownJob, r Request) (
	replies []JobReply,
) {
	done := map[string]bool{} // IDs
	var failed error
	for _, a := range agents {
		if done[a.ID] {
			continue
		}
		var answer jobAnswer
		e := ask(ctx, a.addr, job.uid, r)
		if e.err == nil {
			e.err = json.Unmarshal(e.value, &answer)
		}
		if e.err != nil {
			if !hasEnded(e.err) {
				failed = e.err
			}
			continue
		}
		for _, id := range answer.Members {
			done[id] = true
		}
		replies = append(replies,
			JobReply{Job: job.name, Shown: job.shown, UID: job.uid, Value: answer.Value})
	}
	if replies == nil && failed != nil {
		replies = append(replies,
			JobReply{Job: job.name, Shown: job.shown, UID: job.uid, Err: failed})
	}
	return replies
}

// hasEnded tells whether err is that the agent has ended while it was asked.
func hasEnded(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED)
}
