package integration

import (
	"flag"
	"sync"
	"testing"
)

var atOnce = flag.Int("at-once", 4, "how many scenarios runConcurrently runs at the same time")

// A scenario is one of many similar tests.
type scenario struct {
	name string
	run  func(t *testing.T)
}

// runInOrder runs scenarios as subtests, one after the other.
func runInOrder(t *testing.T, scenarios []scenario) {
	for _, s := range scenarios {
		t.Run(s.name, s.run)
	}
}

// runConcurrently runs scenarios as subtests, a few at the same time, because they mostly wait.
func runConcurrently(t *testing.T, scenarios []scenario) { runAtOnce(t, *atOnce, scenarios) }

// runAtOnce is runConcurrently with a number of scenarios that run at the same time.
func runAtOnce(t *testing.T, n int, scenarios []scenario) {
	slots := make(chan struct{}, n)
	var all sync.WaitGroup
	for _, s := range scenarios {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			t.Run(s.name, s.run)
		})
	}
	all.Wait()
}
