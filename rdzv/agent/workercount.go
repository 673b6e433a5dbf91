package agent

import (
	"cmp"
	"fmt"
	"strconv"

	"rdzv/envmap"
	"rdzv/rdzv"
	"rdzv/rdzv/internal/record"
)

// countWorkers determines how many workers this agent runs; 1 if that fails.
func (l *Local) countWorkers() error {
	procs := cmp.Or(l.Config.ProcsPerNode, l.Placement.PerNode)
	l.PerGPU = procs == "" && l.startsPerGPU()
	if n := l.gpus(); l.PerGPU && n > 1 {
		procs = strconv.Itoa(n)
	}
	l.Workers, l.OwnTasks = 1, procs != ""
	if procs == "" {
		return nil
	}
	n, err := envmap.ProcsPerNode(procs, l.Devices.CountFor(procs), l.CPUs.Count, rdzv.MaxSlots)
	if err == nil {
		l.Workers = n
	}
	return err
}

// startsPerGPU tells whether this agent, which has been given no number of workers, starts one for
// each GPU: it is the only one of its node, and its program is python. Without a program it is
// assumed to be.
func (l *Local) startsPerGPU() bool {
	c, p := l.Config, l.Placement
	switch {
	case !c.WorkerPerGPU:
		return false
	case p.Launcher != envmap.None && p.Platform == "", l.ignoresTasks():
		return false
	}
	return l.setup.IsPython || len(c.Program) == 0 && c.Check == nil
}

// ignoresTasks tells whether this process is one of several on its node, as tasks of a launcher or
// workers, although the user has said that there is no launcher: each would use all GPUs.
func (l *Local) ignoresTasks() bool {
	if l.Config.Launcher != envmap.None {
		return false
	}
	if _, inside, _ := envmap.Inside(l.env); inside {
		return true
	}
	p, err := envmap.Detect(l.env, "")
	return err == nil && p.LocalSize > 1
}

// gpus is how many GPUs there are for workers.
func (l *Local) gpus() int { return l.Devices.OnePerDevice(l.Config.Device) }

// gpuFact is the number of GPUs that this agent publishes, so that the leader can compare the
// nodes; none if it does not decide how many workers there are.
func (l *Local) gpuFact() []rdzv.Fact {
	if !l.PerGPU {
		return nil
	}
	return []rdzv.Fact{{Name: record.GPUs, Value: strconv.Itoa(l.gpus())}}
}

// notePerGPU reports that there is one worker per GPU.
func (m *membership) notePerGPU() {
	l := m.local
	if !l.PerGPU || l.Workers == 1 || m.later || m.world.Seat.Spare {
		return
	}
	workers := fmt.Sprintf("%d workers", l.Workers)
	if m.world.Nodes > 1 {
		workers += " on " + m.self.Host
	}
	m.events.send(EnvironmentNote{
		Text:    workers + ", one per GPU (--nproc-per-node 1: one)",
		Verbose: !m.world.Seat.Has(0),
	})
}

// idleDevices is a sentence for the user if there is one worker on this node, which sees several
// devices; "" if the user has said that this is meant, or has started a program as on one node.
func (l *Local) idleDevices() string {
	c, p := l.Config, l.Placement
	onlyTask := p.Launcher.Reports() && p.LocalSize == 1 && !l.OwnTasks
	if l.Workers != 1 || !onlyTask && !l.PerGPU || c.Check != nil {
		return ""
	}
	return l.Devices.OneWorker()
}
