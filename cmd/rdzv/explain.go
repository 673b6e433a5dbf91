package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdzv/envmap"
)

// row is one line of an explanation.
type row struct {
	What  string `json:"what"`
	Value string `json:"value"`
	From  string `json:"from,omitempty"` // the variable it came from, or why
}

// explain prints where this process is and what its worker would get, every value
// with its source.
func (a *app) explain(j *job, machine bool) int {
	rows, err := a.explanation(j)
	if err != nil {
		return a.say.fail(codeUnknown, err)
	}
	if machine {
		return a.print(asJSON(rows))
	}
	width := 0
	if s := screenOf(a.stdout, a.env); s.width != nil {
		width = s.width()
	}
	return a.print(table(rows, width))
}

func (a *app) explanation(j *job) ([]row, error) {
	if inside, is, err := envmap.Inside(a.env); is && j.launcher == "" {
		note := row{"note", "", "rdzv exec does not start a job inside a worker"}
		return append(placeRows(inside), note), err
	}
	p, err := a.preview(j)
	if j.place.Launcher == "" {
		return nil, err
	}
	rows := placeRows(j.place)
	if j.place.Launcher == envmap.None {
		rows = j.byHandRows()
	}
	rows = append(rows, j.overruled(j.place)...)
	if err != nil { // the launcher does not tell enough for exec: that too is an explanation
		return append(rows, row{"note", "", err.Error() + "; " + hintOf(err)}), nil
	}
	return append(rows, a.workerRows(j, p)...), nil
}

// placeRows is what the launcher told.
func placeRows(p envmap.Placement) []row {
	var rows []row
	for _, e := range p.Explain() {
		from := e.From
		if e.Note != "" {
			from = strings.TrimPrefix(from+"; "+e.Note, "; ")
		}
		rows = append(rows, row{e.What, e.Value, from})
	}
	return rows
}

// byHandRows is the same where there is no launcher: what the flags say.
func (j *job) byHandRows() []row {
	nodes := row{"nodes", strconv.Itoa(j.agents), "--nodes, 1 where it is not given"}
	var rows []row
	for _, r := range placeRows(j.place) {
		switch r.What {
		case "rank", "node rank":
			if r.From = "the agents agree on it when they meet"; j.agents == 1 {
				r.Value, r.From = "0", "there is one node"
			}
		case "size":
			r.Value, r.From = nodes.Value, "by hand there is one agent on each node"
		case "local rank":
			r.Value, r.From = "0", "by hand there is one agent on each node"
		case "local size":
			r.Value, r.From = "1", "by hand there is one agent on each node"
		case "nodes":
			r = nodes
		}
		rows = append(rows, r)
	}
	return rows
}

// workerRows is what the first worker gets besides its place, and what happens to
// the variables that are there already.
func (a *app) workerRows(j *job, p preview) []row {
	rows := []row{j.workersRow(), j.deviceRow(p)}
	kept, notes := a.kept(j, p)
	if slices.Contains(kept, "OMP_NUM_THREADS") {
		rows = append(rows, row{"threads", a.env["OMP_NUM_THREADS"], "OMP_NUM_THREADS is kept as it is set"})
	} else if !slices.Contains(p.open, "OMP_NUM_THREADS") {
		rows = append(rows, row{"threads", strconv.Itoa(p.id.Threads), j.threadsFrom(p.id)})
	}
	for _, name := range kept {
		if name != "OMP_NUM_THREADS" {
			rows = append(rows, row{"kept", name + "=" + a.env[name], "as it is set"})
		}
	}
	rows = append(rows, a.replaced(p)...)
	if len(p.changes.Unset) > 0 {
		rows = append(rows, row{"removed", strings.Join(p.changes.Unset, ", "), "not for the worker"})
	}
	for _, note := range notes {
		rows = append(rows, row{"note", "", note})
	}
	return append(rows, row{"agreed on", strings.Join(p.open, ", "), "when the agents meet"})
}

func (j *job) workersRow() row {
	from := "one worker per task, no --nproc-per-node"
	switch {
	case j.procs != "":
		from = "--nproc-per-node " + j.procs
	case j.place.PerNode != "":
		from = string(j.place.Launcher) + " asks for " + j.place.PerNode
	}
	return row{"workers", strconv.Itoa(j.slots), from}
}

func (j *job) deviceRow(p preview) row {
	from := j.devices.From()
	if !j.devices.Known {
		from = "the local rank: there is " + from
	}
	if j.device != string(envmap.DeviceIndex) {
		from = "--device " + j.device + "; " + from
	}
	for _, kv := range p.changes.Set {
		if kv.Name == "RDZV_DEVICE_INDEX" {
			return row{"device", kv.Value, from}
		}
	}
	if slices.Contains(p.open, "RDZV_DEVICE_INDEX") {
		return row{"device", "unknown", "it follows from the local rank; " + j.devices.From()}
	}
	return row{"device", "none", from}
}

func (j *job) threadsFrom(id envmap.Identity) string {
	return fmt.Sprintf("OMP_NUM_THREADS: %s here for %s of this agent, %s on this node for %s",
		plural(j.cpus.Mask, "core"), plural(j.slots, "worker"), plural(j.cpus.Node, "core"), plural(id.LocalWorldSize, "worker"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// kept are the settings of the user's that exec leaves alone; notes is what it says
// where nothing is set.
func (a *app) kept(j *job, p preview) (names, notes []string) {
	id, o := p.id, j.torchOptions()
	id.Interface, id.GPUs, id.Nodes = "-", 1, max(id.Nodes, 2) // so that what depends on them shows
	o.Set = nil
	here, err := envmap.TorchChanges(a.env, id, o)
	blank, errBlank := envmap.TorchChanges(nil, id, o)
	if err != nil || errBlank != nil {
		return nil, nil // it has worked with more
	}
	names = slices.DeleteFunc(here.Kept, func(name string) bool {
		set := slices.ContainsFunc(p.changes.Set, func(kv envmap.KV) bool { return kv.Name == name }) // by --set
		return set || slices.Contains(p.open, name)
	})
	slices.Sort(names)
	return names, blank.Notes
}

// replaced are the variables that are there with another value than the worker's.
// Those that torchrun or Kubeflow have set are the launcher's, and no surprise.
func (a *app) replaced(p preview) (rows []row) {
	if p.id.Launcher == envmap.Torchrun || p.id.Launcher == envmap.Kubeflow {
		return nil
	}
	for _, kv := range p.changes.Set {
		if old, there := a.env[kv.Name]; there && old != kv.Value {
			rows = append(rows, row{"replaced", kv.Name + "=" + old, "by " + kv.Value})
		}
	}
	for _, name := range p.open {
		if old, there := a.env[name]; there {
			rows = append(rows, row{"replaced", name + "=" + old, "by what the agents agree on"})
		}
	}
	return rows
}
