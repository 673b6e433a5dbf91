package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// patience bounds each job.
const patience = time.Minute

// inject runs the job of a fault and says what of its end is wrong, nothing if all is right.
func (c *campaign) inject(ctx context.Context, f fault) (wrong []string) {
	dir := filepath.Join(c.dir, strconv.Itoa(f.Number))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return []string{err.Error()}
	}
	defer os.RemoveAll(dir)
	f.Mark = filepath.Join(dir, "at-work")
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	j, err := c.start(ctx, f, dir)
	if err != nil {
		return []string{err.Error()}
	}
	if f.Kind == "agent" {
		err = j.killAgent(ctx, f)
	}
	codes := j.wait()
	if err != nil {
		wrong = append(wrong, err.Error())
	}
	return append(wrong, judge(f, codes, j.report, j.said.String())...)
}

// running is a job under way.
type running struct {
	mark     string // in the environment of all its processes
	commands []*exec.Cmd
	said     *bytes.Buffer
	files    []*os.File
	report   string
}

// start starts the commands of a job.
func (c *campaign) start(ctx context.Context, f fault, dir string) (*running, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	j := &running{mark: "CHAOS_JOB=" + dir, said: &bytes.Buffer{}, report: filepath.Join(dir, "report.json")}
	env := slices.Concat(os.Environ(), []string{
		j.mark, "CHAOS_FAULT=" + string(text), "CHAOS_ZYGOTE=" + c.zygote,
		"HOME=" + dir, "TMPDIR=" + dir, "XDG_RUNTIME_DIR=" + dir, "RDZV_REPORT=" + j.report, "OMP_NUM_THREADS=1", "LANG=C.UTF-8",
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
	})
	for i, line := range c.lines(f) {
		out, err := os.Create(filepath.Join(dir, fmt.Sprintf("said-%d", i)))
		if err != nil {
			return nil, err
		}
		j.files = append(j.files, out)
		cmd := exec.CommandContext(ctx, line[0], line[1:]...)
		cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 5 * time.Second
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		j.commands = append(j.commands, cmd)
	}
	return j, nil
}

// lines are the commands that start the job.
func (c *campaign) lines(f fault) [][]string {
	self, _ := os.Executable()
	prog := []string{self, "ferry"}
	if c.real {
		script, _ := c.script()
		prog = []string{c.python, script, "rank"}
	}
	exec := func(flags ...string) []string {
		return slices.Concat([]string{c.rdzv, "exec"}, flags, []string{"--"}, prog)
	}
	n := strconv.Itoa(f.ranks)
	switch f.layout {
	case "one agent":
		return [][]string{exec("--nproc-per-node", n)}
	case "two agents":
		line := exec("--nodes", "2", "--nproc-per-node", strconv.Itoa(f.ranks/2), "--store", freeAddress())
		return [][]string{line, line}
	case "mpirun":
		return [][]string{append([]string{c.mpirun, "--oversubscribe", "-np", n}, exec()...)}
	default:
		return [][]string{append([]string{"mpiexec.hydra", "-np", n}, exec()...)}
	}
}

// freeAddress is one that nobody listens on.
func freeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:29555"
	}
	defer l.Close()
	return l.Addr().String()
}

// wait waits for the commands and returns their exit codes.
func (j *running) wait() (codes []int) {
	for i, cmd := range j.commands {
		_ = cmd.Wait() // how it ended stands in ProcessState
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Signaled() {
			codes = append(codes, 128+int(status.Signal()))
		} else {
			codes = append(codes, status.ExitStatus())
		}
		text, _ := os.ReadFile(j.files[i].Name())
		j.said.Write(text)
		j.files[i].Close()
	}
	return codes
}

var errNotAtWork = errors.New("the ranks have not begun to work")

// killAgent kills the agent of the fault's rank once the ranks are at work.
func (j *running) killAgent(ctx context.Context, f fault) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(f.Mark); err == nil {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errNotAtWork
		}
	}
	agent, err := j.agentOf(f.Rank)
	if err != nil {
		return err
	}
	return syscall.Kill(agent, syscall.SIGKILL)
}

// agentOf finds the worker with a rank by its environment; the agent is its watchdog's parent.
func (j *running) agentOf(rank int) (int, error) {
	found, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range found {
		environ, err := os.ReadFile(path)
		text := "\x00" + string(environ)
		if err != nil || !strings.Contains(text, "\x00"+j.mark+"\x00") || !strings.Contains(text, fmt.Sprintf("\x00RANK=%d\x00", rank)) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		return parentOf(parentOf(pid)), nil
	}
	return 0, fmt.Errorf("there is no rank %d", rank)
}

func parentOf(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}
