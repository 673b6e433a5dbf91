package integration

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// SIGTERM to examples/two-nodes/train-ssh.sh ends the job on both nodes: when all ranks run, and
// when the other node has not joined yet, which would wait until --join-timeout.
func TestTrainSSHStops(t *testing.T) {
	t.Parallel()
	p := newStartPlace(t, oneHome)
	home := p.homes[0]
	p.must(os.MkdirAll(filepath.Join(home, "venv/bin"), 0o700))
	p.write(filepath.Join(home, "venv/bin/activate"), "PATH=~/venv/bin:$PATH\n", 0o600)
	p.link(*rdzvBin, filepath.Join(home, "venv/bin/rdzv"))
	text, err := os.ReadFile("../examples/two-nodes/train-ssh.sh")
	p.must(err)
	script := filepath.Join(home, "train-ssh.sh")
	p.write(script, string(text), 0o700)
	p.write(filepath.Join(home, "train.py"), "import time\nprint('training', flush=True)\n"+
		"time.sleep(1000)\n", 0o600)
	t.Run("running", func(t *testing.T) {
		job := p.on(1, script, "node2")
		for range 4 {
			job.waitFor("training")
		}
		job.signal(syscall.SIGTERM)
		job.checkCode(128 + int(syscall.SIGTERM))
		p.checkNoProcesses()
	})
	t.Run("before node2 has joined", func(t *testing.T) {
		shell := filepath.Join(p.dir("bin"), "ssh")
		p.write(shell, "#!/bin/sh\necho waiting\nexec sleep 1000\n", 0o700)
		job := p.on(1, script, "node2")
		job.waitFor("waiting")
		job.waitFor("no other agent has connected")
		job.signal(syscall.SIGTERM)
		job.checkCode(128 + int(syscall.SIGTERM))
		p.checkNoProcesses()
	})
}
