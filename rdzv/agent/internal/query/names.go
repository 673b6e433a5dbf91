package query

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// shownJob is a job with the name that tells it from the others that were found.
type shownJob struct {
	owned
	label string // how its user calls it
	full  string // label and a hash
	shown string // label, or full if another job has the same label
}

// shownJobs are the jobs of agents in the order of their names.
func shownJobs(agents map[owned][]identified) (all []shownJob) {
	labelled := map[string]int{} // how many jobs have a label
	for job, list := range agents {
		label := job.name
		for i, a := range list { // of tasks with different programs the first in the alphabet
			if l := cmp.Or(a.Label, a.Name); i == 0 || l < label {
				label = l
			}
		}
		labelled[label]++
		full := label + "-" + shortHash(cmp.Or(job.agent, job.name))
		all = append(all, shownJob{owned: job, label: label, full: full})
	}
	for i, j := range all {
		all[i].shown = j.label
		if labelled[j.label] > 1 {
			all[i].shown = j.full
		}
	}
	slices.SortFunc(all, func(a, b shownJob) int {
		return cmp.Or(cmp.Compare(a.shown, b.shown), cmp.Compare(a.name, b.name),
			cmp.Compare(a.uid, b.uid), cmp.Compare(a.agent, b.agent))
	})
	return all
}

var hashAtEnd = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-[0-9a-f]{8}$`)
})

// shortHash is the beginning of the hash at the end of a name, or else of that of the name.
func shortHash(name string) string {
	hash := strings.TrimPrefix(hashAtEnd().FindString(name), "-")
	if hash == "" {
		sum := sha256.Sum256([]byte(name))
		hash = hex.EncodeToString(sum[:])
	}
	return hash[:4]
}

// wanted are the jobs that a word names: all if it is "", otherwise those with this name, or with
// this number of a Slurm job, or the only one whose name begins with it.
func wanted(all []shownJob, word string) []shownJob {
	named := func(is func(name string) bool) (list []shownJob) {
		for _, j := range all {
			if is(j.full) || is(j.label) || is(j.name) { // the other one of its label may have ended
				list = append(list, j)
			}
		}
		return list
	}
	if word == "" {
		return all
	}
	is := func(name string) bool {
		return name == word || strings.Contains(name, "."+word+".") // CLUSTER.JOB.STEP
	}
	if exact := named(is); len(exact) > 0 {
		return exact
	}
	if one := named(func(name string) bool { return strings.HasPrefix(name, word) }); len(one) == 1 {
		return one
	}
	return nil
}
