package main

import (
	"os"
	"os/signal"
	"syscall"
)

// deadlySignals are the signals that an agent acts on until it has returned and that would end this
// process after that.
var deadlySignals = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE,
}

// catchSignals keeps signals from changing the exit code once the agent has returned: a launcher
// that ends the job because an agent has failed sends SIGTERM at that moment. It is called when the
// agent has begun to act on them, so that none is lost. Signals that are ignored stay so, also in
// the workers.
func catchSignals() {
	caught := make(chan os.Signal, 1) // nobody reads it
	for _, s := range deadlySignals {
		if !signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
}
