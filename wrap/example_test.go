package wrap_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"rdzv/wrap"
)

// Two workers run; when one fails, the other one and its descendants are stopped.
func ExampleRun() {
	ctx, cancel := context.WithCancelCause(context.Background())
	results, err := wrap.Run(ctx, wrap.Tree{
		Workers: []wrap.Worker{
			{Path: "/bin/sh", Args: []string{"sh", "-c", "sleep 1000 & sleep 1000"}},
			{
				Path: "/bin/sh", Args: []string{"sh", "-c", "echo failed >&2; exit 3"},
				Stderr: os.Stderr, Capture: true,
			},
		},
		Grace: 5 * time.Second,
		Ended: func(i int, r wrap.Result) {
			if !r.Stopped && r.ExitCode() != 0 {
				cancel(fmt.Errorf("worker %d failed", i))
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(context.Cause(ctx))
	for i, r := range results {
		fmt.Println(i, r.ExitCode(), r.Stopped)
	}
	// Output:
	// worker 1 failed
	// 0 143 true
	// 1 3 false
}

// A program that cannot be run is detected before anything is started, with the exit code that a
// shell would report.
func ExampleFind() {
	_, err := wrap.Find("no-such-program", []string{"PATH=/usr/bin"}, "")
	fmt.Println(err)
	var failure *wrap.FindError
	if errors.As(err, &failure) {
		fmt.Println(failure.ExitCode())
	}
	// Output:
	// cannot run "no-such-program": not found in PATH "/usr/bin"
	// 127
}
