package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed zygote.py
var program []byte

// script writes the ranks' program down and returns its path.
func (c *campaign) script() (string, error) {
	path := filepath.Join(c.dir, "zygote.py")
	return path, os.WriteFile(path, program, 0o600)
}

// startZygote starts the process that forks ranks, and waits until it has imported torch.
func (c *campaign) startZygote(ctx context.Context) (stop func(), err error) {
	script, err := c.script()
	if err != nil {
		return nil, err
	}
	c.zygote = filepath.Join(c.dir, "zygote")
	cmd := exec.Command(c.python, script, "serve", c.zygote)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1")
	cmd.Stderr = os.Stderr
	hold, err := cmd.StdinPipe() // its end is the zygote's
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.python, err)
	}
	stop = func() { hold.Close(); cmd.Wait() }
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(c.zygote); err == nil {
			return stop, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			stop()
			return nil, context.Cause(ctx)
		case <-time.After(2 * time.Minute):
			stop()
			return nil, fmt.Errorf("%s has not imported torch in two minutes", c.python)
		}
	}
}
