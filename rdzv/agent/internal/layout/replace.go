package layout

import (
	"fmt"

	"rdzv/envmap"
)

// MayReplace tells whether an agent that is lost can be started again: without a launcher or by a
// platform, if it then finds the store without searching for agents that have all met.
//
// shared says that the store is a shared one, which every search finds.
func (l *Layout) MayReplace(shared bool) bool {
	p := l.Placement
	onItsOwn := p.Launcher == envmap.None || p.Platform != "" // no launcher ends the job
	return onItsOwn && !l.Started && (shared || l.Known || p.Platform != "" && p.Master != "")
}

// SubmitAgain is the suggestion for a job that cannot go on without the agent or the launcher that
// it has lost.
const SubmitAgain = "submit the job again (in a Slurm job: scontrol requeue), with a program " +
	"that continues from its snapshot"

// NotReplaced returns a suggestion for a job with restarts that ends because an agent was lost, or
// "" if the agent could have been started again. shared is as for MayReplace.
func (l *Layout) NotReplaced(shared bool) string {
	p := l.Placement
	switch {
	case l.MayReplace(shared):
		return ""
	case l.Started:
		return "with --hosts no other agent can take its place: start the job again"
	case l.Elastic() && p.Launcher == envmap.None:
		return "give --nodes a smaller MIN, or --store HOST: the others then wait for more " +
			"nodes"
	case l.Elastic():
		return "give --nodes a smaller MIN"
	case l.Spares > 0:
		return "no spare is left for it: give --spares a larger number"
	case p.Platform != "":
		return "with --store HOST the others wait for it to be started again"
	case p.Launcher == envmap.None:
		return "with --spares N another node takes its place; with --store HOST the others " +
			"wait for it to be started again"
	case l.KeepsSpares():
		one := ""
		if p.LocalSize != max(l.Tasks, 1) { // checkSpares would reject that
			one = "--ntasks-per-node 1 "
		}
		return "with srun " + one + "--no-kill --kill-on-bad-exit=0 rdzv exec --spares N " +
			"another node takes its place"
	}
	return fmt.Sprintf("under %s no other agent can take its place: %s", p.Launcher, SubmitAgain)
}

// HostNotReplaced returns a suggestion for a job with restarts that ends because the agent was lost
// that hosts the store. shared is as for MayReplace.
func (l *Layout) HostNotReplaced(shared bool) string {
	const cluster = "with an etcd cluster (--store http://HOST:2379)"
	switch {
	case l.Started:
		return l.NotReplaced(shared)
	case l.Placement.Platform != "":
		return cluster + " this agent can be started again too; otherwise start all again"
	case l.Placement.Launcher != envmap.None && !l.KeepsSpares():
		return l.NotReplaced(shared)
	case l.KeepsSpares() && l.Spares == 0 && !l.Elastic():
		return cluster + " and --spares N another node takes its place"
	}
	return cluster + " this agent can be replaced too"
}

// MasterHint returns a suggestion if the name of rank 0's node does not resolve, or "" if none is
// known. Pods have names only with a headless service.
func (l *Layout) MasterHint() string {
	switch l.Placement.Launcher {
	case envmap.Kubernetes, envmap.JobSet, envmap.Volcano, envmap.LWS, envmap.Kubeflow:
		return "pods find each other by name if they have a subdomain, and there is a headless " +
			"Service of that name, with publishNotReadyAddresses"
	}
	return ""
}
