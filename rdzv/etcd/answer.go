package etcd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Answer is why a member of the cluster cannot be used.
type Answer struct {
	URL  string
	Text string
	hint string
	// final says that it stays so until somebody changes the configuration of the cluster or of this
	// client.
	final bool
}

func (a Answer) String() string { return a.URL + ": " + a.Text }

// UnavailableError says that no member of the cluster can be used.
type UnavailableError struct {
	Answers []Answer
	Cause   error // why this client has not tried again; nil if that would not help
}

// maxAnswers limits the length of a message.
const maxAnswers = 3

// Error has the answers, those of several members in one if they are the same.
func (e *UnavailableError) Error() string {
	var texts []string
	for i, a := range e.Answers {
		same := func(o Answer) bool { return o.Text == a.Text }
		if slices.ContainsFunc(e.Answers[:i], same) {
			continue
		}
		var urls []string
		for _, o := range e.Answers {
			if same(o) {
				urls = append(urls, o.URL)
			}
		}
		texts = append(texts, short(urls)+": "+a.Text)
	}
	if more := len(texts) - maxAnswers; more > 0 {
		texts = append(texts[:maxAnswers], fmt.Sprintf("and %d more", more))
	}
	return "cannot use etcd at " + strings.Join(texts, "; ")
}

func short(urls []string) string {
	if more := len(urls) - maxAnswers; more > 0 {
		urls = append(urls[:maxAnswers:maxAnswers], fmt.Sprintf("%d more", more))
	}
	return strings.Join(urls, ", ")
}

// Hint returns a suggestion for the user, never "": that of the first answer with one, otherwise to
// check the cluster and the URL.
func (e *UnavailableError) Hint() (hint string) {
	for _, a := range e.Answers {
		hint = cmp.Or(hint, a.hint)
	}
	return cmp.Or(hint, "is the cluster running, and can this node reach it? Check the URL")
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// final tells whether no member can be used unless somebody changes something.
func final(answers []Answer) bool {
	return !slices.ContainsFunc(answers, func(a Answer) bool { return !a.final })
}
