// Package explain says where each value comes from that exec would set for its first worker.
package explain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rdzv/cmd/rdzv/internal/tables"
	"rdzv/envmap"
	"rdzv/internal/plural"
	"rdzv/rdzv/agent"
)

type row = tables.Row

// Rows are the placement of this process and the environment of its first worker, every value with
// its source. err is why the agent could not be planned beyond local.
func Rows(env envmap.Env, local *agent.Local, err error) ([]row, error) {
	if _, inside := errors.AsType[*agent.InsideWorkerError](err); inside {
		place, _, err := envmap.Inside(env)
		note := row{What: "note", From: "rdzv exec does not start a job inside a worker"}
		return append(placeRows(place), note), err
	}
	if local == nil {
		return nil, err
	}
	rows := placeRows(local.Placement)
	if local.Placement.Launcher == envmap.None {
		explainFlags(rows, local)
	}
	for _, flag := range local.IgnoredFlags() {
		rows = append(rows, row{What: "ignored", Value: flag.Flag, From: flag.Reason})
	}
	var p agent.Preview
	if err == nil {
		p, err = local.Preview()
	}
	if err != nil { // exec would fail for this reason
		why := err.Error() + "; " + agent.Hint(err)
		return append(rows, row{What: "note", From: why}), nil
	}
	return append(rows, workerRows(local, p)...), nil
}

// placeRows are the rows of a placement.
func placeRows(p envmap.Placement) []row {
	var rows []row
	for _, e := range p.Explain() {
		from := e.From
		if from != "" && e.Note != "" {
			from += "; "
		}
		from += e.Note
		rows = append(rows, row{What: e.What, Value: e.Value, From: from})
	}
	return rows
}

// explainFlags changes the rows of a placement without a launcher: the flags decide.
func explainFlags(rows []row, local *agent.Local) {
	const onePerNode = "one agent per node without a launcher"
	agents := strconv.Itoa(local.Agents)
	if local.Config.MinNodes > 0 {
		agents = fmt.Sprintf("%d to %d", local.Config.MinNodes, local.Agents)
	}
	for i := range rows {
		switch r := &rows[i]; r.What {
		case "rank", "node rank":
			if r.From = "the agents agree on it when they meet"; local.Agents == 1 {
				r.Value, r.From = "0", "there is one node"
			}
		case "size":
			r.Value, r.From = agents, onePerNode
		case "local rank":
			r.Value, r.From = "0", onePerNode
		case "local size":
			r.Value, r.From = "1", onePerNode
		case "nodes":
			r.Value, r.From = agents, "--nodes, default 1"
		}
	}
}

// workerRows are the rows of the first worker's environment.
func workerRows(local *agent.Local, p agent.Preview) []row {
	set := Values(p.Changes.Set)
	rows := []row{workersRow(local), deviceRow(local, p, set)}
	if p.Python != "" {
		rows = append(rows, row{What: "python", Value: p.Python, From: p.Why})
	}
	if local.Config.Bind == envmap.BindNUMA {
		rows = append(rows, bindingRow(local, p))
	}
	if slices.Contains(p.Changes.Kept, "OMP_NUM_THREADS") {
		rows = append(rows, row{What: "threads", Value: p.Env["OMP_NUM_THREADS"],
			From: "OMP_NUM_THREADS is kept"})
	} else if !slices.Contains(p.Open, "OMP_NUM_THREADS") {
		threads, from := strconv.Itoa(p.Identity.Threads), threadsFrom(local, p.Identity)
		if len(p.Binding.Nodes) > 0 {
			from += "; at most its share of the cores to which it is bound"
		}
		rows = append(rows, row{What: "threads", Value: threads, From: from})
	}
	if p.NoLibuv != "" {
		rows = append(rows, row{What: "libuv", Value: "off", From: "USE_LIBUV=0: " + p.NoLibuv})
	}
	if names := local.Exported(); len(names) > 0 {
		from := "--export: of rank 0's agent, for all workers"
		rows = append(rows, row{What: "exported", Value: strings.Join(names, ", "), From: from})
	}
	for _, name := range slices.Sorted(slices.Values(p.Changes.Kept)) {
		if name != "OMP_NUM_THREADS" {
			rows = append(rows, row{What: "kept", Value: name + "=" + p.Env[name], From: "set by you"})
		}
	}
	for _, old := range p.Changes.Replaced {
		by, known := set[old.Name]
		if !known {
			by = "what the agents agree on"
		}
		rows = append(rows, row{What: "replaced", Value: old.Name + "=" + old.Value, From: "by " + by})
	}
	if len(p.Changes.Unset) > 0 {
		names := strings.Join(p.Changes.Unset, ", ")
		rows = append(rows, row{What: "removed", Value: names, From: "not passed to workers"})
	}
	for _, note := range p.Changes.Notes {
		rows = append(rows, row{What: "note", From: note})
	}
	return append(rows, row{What: "agreed on", Value: strings.Join(p.Open, ", "),
		From: "when the agents meet"})
}

func workersRow(local *agent.Local) row {
	from := "one worker per task, no --nproc-per-node"
	switch {
	case local.Config.ProcsPerNode != "":
		from = "--nproc-per-node " + local.Config.ProcsPerNode
	case local.Placement.PerNode != "":
		from = string(local.Placement.Launcher) + " requests " + local.Placement.PerNode
	case local.PerGPU && local.Workers > 1:
		from = "one per GPU if the program is python or ends in .py, otherwise 1"
	}
	return row{What: "workers", Value: strconv.Itoa(local.Workers), From: from}
}

func deviceRow(local *agent.Local, p agent.Preview, set map[string]string) row {
	device, from := local.Config.Device, local.Devices.From()
	if !local.Devices.Known {
		from = "the local rank: " + from
	}
	if device != envmap.DeviceIndex {
		from = "--device " + string(device) + "; " + from
	}
	if index, known := set["RDZV_DEVICE_INDEX"]; known {
		return row{What: "device", Value: index, From: from}
	}
	if slices.Contains(p.Open, "RDZV_DEVICE_INDEX") {
		return row{What: "device", Value: "unknown",
			From: "depends on the local rank; " + local.Devices.From()}
	}
	return row{What: "device", Value: "none", From: from}
}

// bindingRow says where the first worker runs if workers are bound.
func bindingRow(local *agent.Local, p agent.Preview) row {
	r := row{What: "binding", Value: p.Binding.String(), From: "--bind numa: " + p.Binding.Why}
	if slices.Contains(p.Open, "LOCAL_RANK") || slices.Contains(p.Open, "LOCAL_WORLD_SIZE") {
		r.Value, r.From = "unknown", "--bind numa: depends on what the agents agree on"
	}
	if err := local.NoMemoryNode(); err != nil {
		r.From += "; no memory node: " + err.Error()
	}
	return r
}

func threadsFrom(local *agent.Local, id envmap.Identity) string {
	return fmt.Sprintf("OMP_NUM_THREADS: %s for the %s of this agent, %s on this node for %s",
		plural.Of(local.CPUs.Mask, "core"), plural.Of(local.Workers, "worker"),
		plural.Of(local.CPUs.Node, "core"), plural.Of(id.LocalWorldSize, "worker"))
}

// Values are the values of variables by name.
func Values(variables []envmap.KV) map[string]string {
	m := make(map[string]string, len(variables))
	for _, kv := range variables {
		m[kv.Name] = kv.Value
	}
	return m
}
