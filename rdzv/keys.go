package rdzv

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

// jobKeys are those of a job's name. The prefix ends with a slash.
type jobKeys struct{ prefix string }

func jobKeysOf(prefix, job string) jobKeys {
	return jobKeys{prefix + Root + "/" + url.PathEscape(job) + "/"}
}

// only is the run of the job in a store that an agent hosts: there is one.
func (k jobKeys) only() runKeys { return runKeys(k) }

// run is the key of the present run in a store that no agent hosts, below which all others are.
func (k jobKeys) run() string             { return k.prefix + "run" }
func (k jobKeys) ofRun(id string) runKeys { return runKeys{k.run() + "/" + id + "/"} }

// runKeys are those of one run of a job: of all its attempts.
type runKeys struct{ prefix string }

func (k runKeys) agents() string         { return k.prefix + "agent/" }
func (k runKeys) agent(id string) string { return k.agents() + id }
func (k runKeys) host(node string) string {
	return k.prefix + "host/" + url.PathEscape(node) + "/"
}

// place is that of an agent which occupies its host, alone or with a node rank.
func (k runKeys) place(m Member) string { return k.host(m.Node) + strconv.Itoa(m.NodeRank) }

func (k runKeys) losses() string        { return k.prefix + "lost/" }
func (k runKeys) lost(id string) string { return k.losses() + id }
func (k runKeys) strangers() string     { return k.prefix + "stranger/" }

// latest is the key of the number of the latest attempt after the first one.
func (k runKeys) latest() string { return k.prefix + "latest" }

func (k runKeys) ofAttempt(n int) keys { return keys{k, k.prefix + strconv.Itoa(n) + "/"} }

// keys builds all keys of one attempt of one run of a job. Nothing else builds keys.
type keys struct {
	run    runKeys
	prefix string
}

func (k keys) members() string           { return k.prefix + "member/" }
func (k keys) member(id string) string   { return k.members() + id }
func (k keys) preparing() string         { return k.prefix + "preparing/" }
func (k keys) prepares(id string) string { return k.preparing() + id }
func (k keys) seat(id string) string     { return k.prefix + "seat/" + id }
func (k keys) progresses() string        { return k.prefix + "progress/" }
func (k keys) progress(id string) string { return k.progresses() + id }
func (k keys) reaches() string           { return k.prefix + "reached/" }
func (k keys) reached(id string) string  { return k.reaches() + id }
func (k keys) outcomes() string          { return k.prefix + "outcome/" }
func (k keys) outcome(id string) string  { return k.outcomes() + id }
func (k keys) signals() string           { return k.prefix + "signal/" }
func (k keys) readies() string           { return k.prefix + "ready/" }
func (k keys) ready(id string) string    { return k.readies() + id }
func (k keys) exports() string           { return k.signals() + "exports" }
func (k keys) asks() string              { return k.signals() + "ask/" }
func (k keys) ask(id string) string      { return k.asks() + id }
func (k keys) answers(id string) string  { return k.prefix + "answer/" + id + "/" }
func (k keys) world() string             { return k.signals() + "world" }
func (k keys) start() string             { return k.signals() + "start" }
func (k keys) release() string           { return k.signals() + "release" }
func (k keys) absent() string            { return k.signals() + "absent" }
func (k keys) connects() string          { return k.prefix + "connecting/" }
func (k keys) connecting(id string) string {
	return k.connects() + id
}
func (k keys) init() string            { return k.signals() + "init" }
func (k keys) look() string            { return k.signals() + "look" }
func (k keys) shares() string          { return k.signals() + "share/" }
func (k keys) share(signal int) string { return k.shares() + strconv.Itoa(signal) }
func (k keys) verdict() string         { return k.signals() + "verdict" }
func (k keys) left(id string) string   { return k.signals() + "left/" + id }
func (k keys) settled() string         { return k.signals() + "settled" }

// answer is the key of an agent's answer to a question.
func (k keys) answer(ask, agent string) string { return k.answers(ask) + agent }
