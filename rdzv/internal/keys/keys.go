// Package keys builds the keys of a job: those of its name, of its runs, and of their attempts.
// Nothing else does.
package keys

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// DefaultPrefix is that of all keys of all jobs.
const DefaultPrefix = "/rdzv/"

// Root follows the prefix in all keys. It is the same in all versions of the protocol, so that
// agents of different versions find the same run.
const Root = "v1"

// CheckName rejects what may be written in several ways if it is taken for a path: "//", and "."
// and ".." between slashes. It is for names of jobs and prefixes of keys that a user gives.
func CheckName(name string) error {
	if strings.Contains(name, "//") {
		return errors.New(`must not contain "//"`)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." {
			return fmt.Errorf("must not have %q as a part", part)
		}
	}
	return nil
}

// Family is the prefix of the keys of one kind, with the slash that ends it.
type Family string

// Of is the key of one of them.
func (f Family) Of(id string) string { return string(f) + id }

// ID returns the id with which Of has made a key of this family.
func (f Family) ID(key string) string { return strings.TrimPrefix(key, string(f)) }

// End follows all keys of the family.
func (f Family) End() string { return string(f[:len(f)-1]) + "0" }

// Job are the keys of a job's name. All begin with Prefix, which ends with a slash.
type Job struct{ Prefix string }

// OfJob are those of a job, in a store whose keys begin with a prefix.
func OfJob(prefix, job string) Job { return Job{prefix + Root + "/" + url.PathEscape(job) + "/"} }

// NameOf is the name of the job that has a key below DefaultPrefix; "" if it is none.
func NameOf(key string) string {
	rest, is := strings.CutPrefix(key, DefaultPrefix+Root+"/")
	escaped, _, _ := strings.Cut(rest, "/")
	name, err := url.PathUnescape(escaped)
	if !is || err != nil {
		return ""
	}
	return name
}

// Only is the run of the job in a store that an agent hosts: there is one.
func (j Job) Only() Run { return Run(j) }

// Present is the key of the present run in a store that no agent hosts, below which all others are.
func (j Job) Present() string { return j.Prefix + "run" }

// Run is one run of those.
func (j Job) Run(id string) Run { return Run{j.Present() + "/" + id + "/"} }

// Run are the keys of one run of a job: of all its attempts. Those of the zero value are relative
// to the run.
type Run struct{ Prefix string }

// The names of the keys of a run.
const (
	Agent  = "agent"
	Lost   = "lost"
	Latest = "latest"
)

// Agents exist as long as an agent is present, Lost when it is lost.
func (r Run) Agents() Family { return Family(r.Prefix + Agent + "/") }
func (r Run) Lost() Family   { return Family(r.Prefix + Lost + "/") }

// Hosts are the places of agents on a node, by their node ranks.
func (r Run) Hosts(node string) Family {
	return Family(r.Prefix + "host/" + url.PathEscape(node) + "/")
}

// Place is that of an agent which occupies its host, alone or with a node rank.
func (r Run) Place(node string, nodeRank int) string {
	return r.Hosts(node).Of(strconv.Itoa(nodeRank))
}

// Latest is the key of the number of the latest attempt after the first one.
func (r Run) Latest() string { return r.Prefix + Latest }
