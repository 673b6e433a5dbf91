package envmap

import (
	"io/fs"
	"slices"
	"strings"
)

// What the table of platforms cannot say about pods of Kubernetes.

// rankIsPod reports that RANK is that of a pod: the process runs on Kubernetes, and nothing has
// numbered processes inside the pod. WORLD_SIZE alone may be anybody's (see unclaimedByUser).
func rankIsPod(env Env) bool {
	return env.has("KUBERNETES_SERVICE_HOST") && env.has("RANK") &&
		!env.has("TORCHELASTIC_RUN_ID") && !env.has("LOCAL_RANK")
}

// petIsPyTorchJob reports that torchrun's variables are those of a PyTorchJob: Trainer sets neither
// RANK nor, as a PyTorchJob without a master does, PET_RDZV_ENDPOINT.
func petIsPyTorchJob(env Env) bool { return rankIsPod(env) || env.has("PET_RDZV_ENDPOINT") }

// onRunPod reports that a variable of RunPod is set: the others have names that anybody may use.
func onRunPod(env Env) bool {
	for name := range env {
		if strings.HasPrefix(name, "RUNPOD_") {
			return true
		}
	}
	return false
}

func anyJobSet(env Env) bool {
	return env.first("JOBSET_JOB_GLOBAL_INDEX", "JOBSET_COORDINATOR") != ""
}

// findJobSetPod decides what the index of a JobSet's pod means. The global index is that of a Job,
// and so that of a pod only if each Job has one.
func findJobSetPod(r *reader, pl *platform) {
	if pl.pod = "-#"; !r.env.has("JOBSET_JOB_GLOBAL_INDEX") {
		return
	}
	pl.pod = "-#-0"
	if pod := r.env["JOB_COMPLETION_INDEX"]; pod != "" && pod != "0" && r.err == nil {
		r.err = &Error{
			Text: "cannot determine the rank: JOBSET_JOB_GLOBAL_INDEX numbers Jobs, and this one " +
				"has several pods (" + r.env.shown("JOB_COMPLETION_INDEX") + ")",
			Hint: "give each Job of the JobSet one pod, or make all pods those of one Job",
		}
	}
}

// findVolcanoTask finds the variables of this pod's task: VC_NAME_NUM and VC_NAME_HOSTS. If the job
// has several tasks, the index is that within one of them, and the world is unknown.
func findVolcanoTask(r *reader, pl *platform) {
	var counts []string
	for name := range r.env {
		task, isCount := strings.CutSuffix(name, "_NUM")
		if isCount && strings.HasPrefix(task, "VC_") && r.env.has(task+"_HOSTS") {
			counts = append(counts, name)
		}
	}
	slices.Sort(counts)
	if len(counts) > 1 && r.err == nil {
		r.err = &Error{
			Text: "cannot determine the rank: " + r.env.shown("VC_TASK_INDEX") +
				" is that of a task, and the Volcano job has several: " + r.env.shown(counts...),
			Hint: "make all pods those of one task, or use the plugin pytorch, which numbers the " +
				"pods of master and worker; --nodes 1 makes this pod a job of its own",
		}
	}
	if len(counts) > 0 {
		pl.count = counts[0]
		pl.master = []string{strings.TrimSuffix(counts[0], "_NUM") + "_HOSTS"}
	}
}

// readNodeRange reads PET_NNODES, which may be torchrun's range MIN:MAX. A range is a size only if
// MIN and MAX are equal; otherwise the pods have no ranks before they have met.
func readNodeRange(r *reader) {
	low, high, isRange := strings.Cut(r.env["PET_NNODES"], ":")
	if !isRange || r.err != nil {
		r.require("size", "PET_NNODES")
		return
	}
	n, err := parseNumber("PET_NNODES", low)
	if _, notHigh := parseNumber("PET_NNODES", high); err == nil {
		err = notHigh
	}
	if r.err = err; err != nil {
		return
	}
	if low != high {
		store, _, _ := strings.Cut(r.env["PET_RDZV_ENDPOINT"], ":")
		if store == "" {
			store = "HOST"
		}
		r.err = &Error{
			Text: "cannot determine the size: " + r.env.shown("PET_NNODES") + " is a range",
			Hint: "for a variable number of pods: rdzv exec --launcher none " +
				"--nodes " + low + ":" + high + " --store " + store,
		}
		return
	}
	r.p.set("size", n, r.env.shown("PET_NNODES"))
}

// readFirstPod takes rank 0's node from this pod's own host name: pod 0 of train-3.svc is
// train-0.svc, if host names of pods end in "-#". The subdomain is that of the pod's full name in
// /etc/hosts, which the kubelet writes before the short one (documented: kubernetes, pkg/kubelet/
// kubelet_pods.go, managedHostsFileContent). Pods with the network of their node have its name.
func readFirstPod(r *reader, ends string) {
	short, domain, _ := strings.Cut(r.given.Host, ".")
	stem, isPod := strings.CutSuffix(short, strings.Replace(ends, "#", itoa(r.p.Rank), 1))
	if !isPod || stem == "" {
		return
	}
	if full := fullName(r.given.Root, short); full != "" {
		domain = full
	}
	master := stem + strings.Replace(ends, "#", "0", 1)
	subdomain, _, _ := strings.Cut(domain, ".")
	if subdomain != "" {
		master += "." + subdomain
	}
	if ofJobSet(short, subdomain) && r.p.Launcher == Kubernetes {
		r.p.Platform = "JobSet"
	}
	r.setMaster(master, "this pod is "+short)
}

// fullName returns the domain of a host according to /etc/hosts; "" if it has none.
func fullName(root fs.FS, host string) string {
	if root == nil {
		return ""
	}
	text, _ := fs.ReadFile(root, "etc/hosts")
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		for _, name := range strings.Fields(line) {
			if domain, found := strings.CutPrefix(name, host+"."); found {
				return domain
			}
		}
	}
	return ""
}

// ofJobSet tells whether a pod's host name is that of a JobSet, whose name is the subdomain by
// default: SET-REPLICATEDJOB-JOB-POD.
func ofJobSet(host, subdomain string) bool {
	rest, inSet := strings.CutPrefix(host, subdomain+"-")
	parts := strings.Split(rest, "-")
	if !inSet || len(parts) < 3 {
		return false
	}
	_, notJob := parseNumber("", parts[len(parts)-2])
	return notJob == nil
}
