package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rdzv/envmap"
	"rdzv/rdzv"
)

// job is what one agent knows before it has met the others.
type job struct {
	*options
	program []string
	place   envmap.Placement

	name    string // of the run; equal on all agents
	agents  int    // how many agents there are
	slots   int    // how many workers this agent runs
	path    string // the program as found
	devices envmap.Devices
	cpus    envmap.CPUs

	problems []rdzv.Problem // of this node, that keep this agent from running its workers
}

// plan makes a job of the command line and the environment. With an error it returns
// what it knows of the job so far.
func (a *app) plan(args []string) (*job, error) {
	j := &job{options: &options{}}
	if err := j.read(args, a.env); err != nil {
		return j, err
	}
	if err := enoughFiles("run exec", ownFiles); err != nil {
		return j, err
	}
	a.say.quiet, a.say.verbose = j.quiet, j.verbose
	if already := insideWorker(a.env); already != "" && j.launcher == "" {
		return j, advice{errors.New("cannot run exec: " + already), "a worker of a job cannot start another one; --launcher none starts one all the same"}
	}
	var err error
	if j.place, err = envmap.Detect(a.env, envmap.Launcher(j.launcher)); err != nil {
		return j, err
	}
	if j.place.Rank <= 0 { // the others know no better
		for _, r := range j.overruled(j.place) {
			a.say.news("%s does not hold: %s", r.Value, r.From)
		}
	}
	j.see(a.env)
	if err := j.countAgents(); err != nil {
		return j, err
	}
	j.name = j.nameOf()
	j.tryWorkers(a)
	return j, nil
}

// see looks at this node's devices and processors.
func (j *job) see(env envmap.Env) {
	root := os.DirFS("/")
	j.devices, j.cpus = envmap.VisibleDevices(env, root), envmap.ReadCPUs(root)
}

// read takes the flags and the program.
func (j *job) read(args []string, env envmap.Env) error {
	f := newFlags("exec")
	j.define(f)
	j.defineExec(f)
	program, dashes, err := parse(f, args, env)
	switch {
	case err != nil:
		j.report = "" // it may be misread, as the other flags
		return err
	case len(program) == 0:
		return advice{errors.New("cannot run exec: no program given"), "rdzv exec -- python3 main.py"}
	case !dashes:
		return advice{fmt.Errorf("cannot run exec: no -- before the program %q", program[0]), inOrder(args, program)}
	}
	j.program = program
	return j.check()
}

// inOrder is the line that was meant where the program begins without dashes:
// flags of exec behind it, as mpirun's and torchrun's may not stand either, come
// before it.
func inOrder(args, program []string) string {
	flags := args[:len(args)-len(program)]
	f := newFlags("exec")
	o := &options{}
	o.define(f)
	o.defineExec(f)
	f.SetInterspersed(true)
	if f.Parse(program) == nil {
		flags, program = slices.Concat(flags, without(program, f.Args())), f.Args()
	}
	return strings.Join(slices.Concat([]string{"rdzv exec"}, flags, []string{"--"}, program), " ")
}

// without is words but those that rest has too, in the order of both.
func without(words, rest []string) (left []string) {
	for _, w := range words {
		if len(rest) > 0 && w == rest[0] {
			rest = rest[1:]
		} else if w != "--" {
			left = append(left, w)
		}
	}
	return left
}

// insideWorker tells which worker this process is in, "" if in none.
func insideWorker(env envmap.Env) string {
	if env["RDZV_RUN_ID"] == "" || env["RANK"] == "" {
		return ""
	}
	return fmt.Sprintf("already rank %s of job %s", env["RANK"], env["RDZV_RUN_ID"])
}

// count says how many agents the job has and how many workers this one runs.
func (j *job) count() error {
	if err := j.countAgents(); err != nil {
		return err
	}
	return j.countWorkers()
}

func (j *job) countAgents() error {
	byHand := j.place.Launcher == envmap.None
	switch {
	case byHand:
		j.agents = max(j.nodes, 1)
	case j.place.Size == envmap.Unknown || j.place.Rank == envmap.Unknown:
		return advice{
			fmt.Errorf("cannot run exec: %s does not tell the rank and the number of its tasks", j.place.Launcher),
			"start it by hand with --launcher none --nodes N",
		}
	default:
		j.agents = j.place.Size
	}
	return nil
}

// countWorkers says how many workers this agent runs: 1 where it cannot be said.
func (j *job) countWorkers() error {
	j.slots = 1
	procs := j.procs
	if procs == "" {
		procs = j.place.PerNode
	}
	if procs == "" {
		return nil
	}
	n, err := envmap.ProcsPerNode(procs, j.devices.Count(), j.cpus.Count, rdzv.MaxSlots)
	if err != nil {
		return err
	}
	j.slots = n
	return nil
}

// ownTasks tells whether the workers are tasks of this agent and not the
// launcher's own.
func (j *job) ownTasks() bool { return j.procs != "" || j.place.PerNode != "" }

// nameOf names the run: as asked for, as the launcher does, or by hand by what
// is run, so that two different lines never meet.
func (j *job) nameOf() string {
	if j.job != "" {
		return j.job
	}
	if j.place.Job != "" {
		return j.place.Job
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{strconv.Itoa(j.agents)}, j.program...), "\x00")))
	return filepath.Base(j.program[0]) + "-" + hex.EncodeToString(sum[:4])
}

// newID is a name that no other agent has.
func newID() string {
	b := make([]byte, 8)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
