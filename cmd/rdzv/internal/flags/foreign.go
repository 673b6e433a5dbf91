package flags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"rdzv/internal/hint"
	"rdzv/internal/spelling"
)

// Foreign are flags of other launchers, with what exec has instead. They are a function
// because each start of an agent would make the map.
func Foreign() map[string]string {
	const (
		workers = "use --nproc-per-node N for the number of workers on a node"
		nodes   = "use --nodes N"
		hosts   = "use --hosts HOST[:WORKERS],..., or start rdzv with mpirun or srun"
		file    = "use --hostfile FILE, or start rdzv with mpirun or srun"
		export  = "use --export NAME or --export NAME=VALUE"
		master  = "use --store HOST, if the nodes do not find each other"
		none    = "omit it"
		visible = "set CUDA_VISIBLE_DEVICES on each node, and use --nproc-per-node gpu"
		mpirun  = "give it to mpirun, before rdzv"
		srun    = "give it to srun, before rdzv"
		environ = "omit it: workers get the environment of rdzv"
		elastic = "use --nodes MIN:MAX"
		logs    = "use --log-dir DIR"
		docker  = "give it to docker run, and start rdzv inside the container"
		program = "give it to the program"
	)
	return map[string]string{
		// mpirun and mpiexec.hydra
		"n": workers, "np": workers, "c": workers, "ppn": workers, "npernode": workers, "N": nodes,
		"nprocs": workers, "num-procs": workers, "procs": workers, "perhost": workers,
		"pernode": "use --nproc-per-node 1",
		"x":       export, "genv": export, "host": hosts, "f": file,
		"machinefile": file, "default-hostfile": file, "hostlist": hosts,
		"tag-output": "use --tag", "prepend-rank": "use --tag", "output-filename": logs,
		"genvlist": export, "envlist": export, "genvall": environ, "envall": environ,
		"bind-to":       mpirun + "; rdzv leaves the binding as it is, unless --bind numa is given",
		"oversubscribe": none, "allow-run-as-root": none,
		"map-by": mpirun, "rank-by": mpirun, "mca": mpirun, "report-bindings": mpirun,
		"rankfile": mpirun, "nolocal": mpirun, "bynode": mpirun, "byslot": mpirun, "npersocket": mpirun,
		"display-map": mpirun, "display": mpirun, "prefix": mpirun, "timeout": mpirun,
		"merge-stderr-to-stdout": mpirun,
		"iface":                  "use --net NAME", "wdir": "use --chdir DIR",
		// srun
		"ntasks": workers, "ntasks-per-node": workers, "nodelist": hosts, "w": hosts,
		"label": "use --tag", "l": "use --tag",
		"cpus-per-task": srun, "cpu-bind": srun, "gres": srun, "gpus-per-task": srun,
		"gpus-per-node": srun, "gpu-bind": srun, "G": srun, "mem": srun, "time": srun, "mpi": srun,
		"partition": srun, "account": srun, "A": srun, "qos": srun, "exclusive": srun,
		"constraint": srun, "p": srun, "job-name": "use --job NAME, if at all",
		"ntasks-per-core": srun, "ntasks-per-gpu": srun, "ntasks-per-socket": srun, "nodefile": file,
		"mem-per-cpu": srun, "mem-per-gpu": srun, "mem-bind": srun, "cpus-per-gpu": srun,
		"gpus-per-socket": srun, "tres-bind": srun, "threads-per-core": srun, "hint": srun,
		"reservation": srun, "distribution": srun, "overlap": srun, "signal": srun, "dependency": srun,
		"kill-on-bad-exit": srun, "K": srun, "no-kill": srun, "wait": srun, "unbuffered": srun,
		"u": "omit it: the output of python is not buffered", "output": logs, "o": logs, "error": logs,
		"D": "use --chdir DIR",
		// torch.distributed.launch, and programs that start themselves
		"use-env": "omit it: programs read LOCAL_RANK", "rank": "use --node-rank N, if at all",
		"world-size": "use --nodes N, and --nproc-per-node N for the number of workers on each",
		// accelerate
		"num-machines": nodes, "machine-rank": "use --node-rank N, if at all",
		"main-process-ip": master, "main-process-port": "use --master-port PORT, if at all",
		"num-processes":   "use --nproc-per-node N, the number of workers on each node",
		"multi-gpu":       "omit it; --nproc-per-node gpu starts a worker for each GPU",
		"config-file":     "use flags: rdzv has no configuration file",
		"mixed-precision": program + ": ACCELERATE_MIXED_PRECISION, with --export NAME=VALUE",
		"dynamo-backend":  program + ": ACCELERATE_DYNAMO_BACKEND, with --export NAME=VALUE",
		"gpu-ids":         visible, "same-network": none,
		"num-cpu-threads-per-process": "set OMP_NUM_THREADS, with --export NAME=VALUE, if at all",
		"use-deepspeed": program +
			": ACCELERATE_USE_DEEPSPEED=true, with --export NAME=VALUE",
		"deepspeed-config-file": program +
			": ACCELERATE_DEEPSPEED_CONFIG_FILE, with --export NAME=VALUE",
		"main-training-function": program, "cpu": program + ": ACCELERATE_USE_CPU=true, with " +
			"--export NAME=VALUE",
		"deepspeed-hostfile": file, "mpirun-hostfile": file, "deepspeed-multinode-launcher": none,
		"use-fsdp": "give FullyShardedDataParallelPlugin to Accelerator, in the program",
		// DeepSpeed
		"num-gpus": "use --nproc-per-node N, or --nproc-per-node gpu", "num-nodes": nodes,
		"num-accelerators": "use --nproc-per-node N, or --nproc-per-node gpu",
		"include":          visible, "exclude": visible, "no-ssh": none, "ssh-port": none,
		"force-multi": none, "save-pid": none,
		"launcher-args":    "give them to the launcher, before rdzv",
		"elastic-training": elastic, "min-elastic-nodes": elastic, "max-elastic-nodes": elastic,
		"enable-each-rank-log": logs, "bind-cores-to-rank": "use --bind numa",
		"bind-core-list": "use --bind numa",
		"no-local-rank":  "omit it: programs read LOCAL_RANK",
		// Lightning
		"devices":     "use --nproc-per-node N, and give devices=N to Trainer or Fabric",
		"accelerator": program, "strategy": program, "precision": program,
		"main-address": master, "main-port": "use --master-port PORT, if at all",
		// docker
		"env": export, "e": export, "gpus": "use --nproc-per-node gpu",
		"rm": docker, "it": docker, "i": docker, "network": docker, "ipc": docker, "volume": docker,
		"shm-size": docker, "mount": docker, "ulimit": docker, "privileged": docker, "runtime": docker,
		"entrypoint": docker, "workdir": docker,
		// earlier versions
		"share-signals": "omit it: scancel and most launchers signal all tasks; without a launcher, " +
			"send the signal on each node",
		"store-user": "put NAME:PASSWORD in RDZV_STORE_USER: every user of this node can read flags",
		"head-start": "omit it: the head start of rank 0 is always 200 ms",
		"deep":       "omit it: rdzv check always imports torch",
	}
}

// foreignSwitches are those of Foreign that take no value.
func foreignSwitches() []string {
	return []string{
		"tag-output", "oversubscribe", "allow-run-as-root", "report-bindings", "label", "l",
		"pernode", "prepend-rank", "genvall", "envall", "nolocal", "bynode", "byslot", "display-map",
		"merge-stderr-to-stdout", "overlap", "kill-on-bad-exit", "K", "no-kill", "unbuffered", "u",
		"use-env", "cpu", "force-multi", "elastic-training", "bind-cores-to-rank",
		"exclusive", "multi-gpu", "same-network", "use-deepspeed", "use-fsdp", "no-ssh",
		"no-local-rank", "rm", "it", "i", "privileged", "deep",
	}
}

// foreignValues is how many words after an unknown flag are its values.
func foreignValues(name string, after []string) int {
	switch hint := Foreign()[name]; {
	case slices.Contains(foreignSwitches(), name):
		return 0
	case name == "mca":
		return 2
	case hint != "" && len(after) > 0 && !strings.HasPrefix(after[0], "-"):
		return 1
	}
	return 0
}

// unknownFlag suggests what was probably meant.
func unknownFlag(f *pflag.FlagSet, err *pflag.NotExistError) error {
	dashes, name := "--", err.GetSpecifiedName()
	if letters := err.GetSpecifiedShortnames(); letters != "" {
		dashes, name = "-", letters
	}
	name, _, _ = strings.Cut(name, "=")
	unknown := fmt.Errorf("cannot run %s: unknown flag %q", f.Name(), dashes+name)
	name = string(Canonical(f, name))
	if dashes == "-" {
		name = strings.TrimRight(name, "0123456789") // -N2
	}
	switch here := Foreign()[name]; {
	case here != "" && (f.Name() == "exec" || f.Name() == "check"):
		return hint.With(unknown, here)
	case name == "json" && f.Lookup("output") != nil:
		return hint.With(unknown, "use -o json")
	case name == "flight-recorder" && f.Name() == "stacks":
		return hint.With(unknown, "write a byte to each flight_recorder_*.pipe in the directory of the "+
			"logs: torch then writes its files there")
	case name == "job" && f.Name() == "stop":
		return hint.With(unknown, "rdzv stop JOB")
	}
	var names []string
	f.VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			names = append(names, flag.Name)
		}
	})
	if near := similar(name, names); len(near) > 0 {
		return hint.With(unknown, "did you mean --"+strings.Join(near, " or --")+"?")
	}
	return hint.With(unknown, "rdzv help "+f.Name())
}

// similar are the names that begin with a mistyped one, as torchrun completes it, if they are not
// many; otherwise the most similar one.
func similar(name string, names []string) (found []string) {
	for _, n := range names {
		if len(name) > 1 && strings.HasPrefix(n, name) {
			found = append(found, n)
		}
	}
	if len(found) >= 1 && len(found) <= 3 {
		return found
	}
	if near := spelling.Nearest(name, names); near != "" {
		return []string{near}
	}
	return nil
}
