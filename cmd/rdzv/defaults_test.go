package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdzv/cmd/rdzv/internal/announce"
	"rdzv/cmd/rdzv/internal/console"
	"rdzv/cmd/rdzv/internal/files"
	"rdzv/cmd/rdzv/internal/options"
	"rdzv/envmap"
	"rdzv/internal/pagetest"
	"rdzv/rdzv/agent"
)

// placementPage is the page with the tables, whatever the directory of the test is.
func placementPage(t *testing.T) string {
	t.Helper()
	page, err := filepath.Abs("../../docs/guide/placement.md")
	fatalIf(t, err)
	return page
}

// planned is the agent that exec plans for a command line, the program rdzv being in a directory.
func planned(t *testing.T, dir string, environ, args []string) *agent.Local {
	t.Helper()
	environ = append([]string{"HOME=" + t.TempDir()}, environ...)
	quiet := console.To(io.Discard, console.Destination{})
	a := &app{environ: environ, env: envmap.ParseEnv(environ), console: quiet, dir: dir}
	words := announce.New(quiet)
	e := &execution{
		app: a, options: options.New(), words: words, report: files.NewReport(quiet, nil, "", nil),
	}
	local, err := e.plan(args)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	local, err = agent.Plan(local.Config) // which looks at the program
	fatalIf(t, err)
	return local
}

// write makes files in a directory: links to what follows "->", programs if their names are in bin.
func write(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		name, target, isLink := strings.Cut(name, "->")
		file := filepath.Join(dir, name)
		fatalIf(t, os.MkdirAll(filepath.Dir(file), 0o700))
		if isLink {
			fatalIf(t, os.Symlink(target, file))
			continue
		}
		fatalIf(t, os.WriteFile(file, []byte("a file\n"), 0o700))
	}
}

// How many workers an agent starts by default, and why: the table of the page. Each row has command
// lines for which it holds.
func TestGeneratedWorkers(t *testing.T) {
	const (
		lws  = "LWS_WORKER_INDEX=0 LWS_GROUP_SIZE=2 LWS_LEADER_ADDRESS=127.0.0.1"
		pet  = "PET_NODE_RANK=0 PET_NNODES=2 PET_MASTER_ADDR=127.0.0.1 PET_NPROC_PER_NODE=2"
		ompi = "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_SIZE="
		srun = "SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_LOCALID=0 " +
			"SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=4 SLURM_STEP_NUM_NODES=1"
		worker = "RDZV_RUN_ID=x RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1"

		three = "CUDA_VISIBLE_DEVICES=0,1,2"
		none  = "CUDA_VISIBLE_DEVICES="
	)
	file, dir := placementPage(t), t.TempDir()
	bin := filepath.Join(dir, "bin")
	write(t, dir, "bin/python3.11", "bin/python3->python3.11", "bin/python->python3", "bin/bash", "bin/env",
		"bin/train->../main.py", "bin/python2->bash", "bin/pypython", "main.py")
	t.Chdir(dir)
	type job struct {
		environ, command string
		workers          int
	}
	page := "| started by | program | workers on the node |\n|---|---|---|\n"
	for _, row := range []struct {
		by, program, workers string
		jobs                 []job
	}{
		{
			"you, or a platform such as LeaderWorkerSet", "`python3`, `/opt/venv/bin/python`, `main.py`",
			"one per GPU, 1 without GPUs", []job{
				{three, "-- python3 main.py", 3}, {three, "-- " + bin + "/python -c pass", 3},
				{three, "-- ./main.py", 3}, {three, "-- train", 3}, {three, "main.py", 3},
				{three, "-m package", 3}, {three, "--nodes 2 -- python3 main.py", 3},
				{three, "--launcher none main.py", 3}, {three, "--device mask main.py", 3},
				{three + " " + lws, "-- python main.py", 3}, {none, "-- python3 main.py", 1},
				{none + " " + lws, "main.py", 1}, {"CUDA_VISIBLE_DEVICES=5", "main.py", 1},
				{"CUDA_VISIBLE_DEVICES=MIG-a,MIG-b", "main.py", 1},
				{"CUDA_VISIBLE_DEVICES=MIG-a,MIG-b", "--device mask main.py", 2},
				{"ASCEND_RT_VISIBLE_DEVICES=0,1", "main.py", 2},
			},
		},
		{"the same", "`bash`, `nvidia-smi`, any other program", "1", []job{
			{three, "-- bash main.py", 1}, {three, "-- python2 main.py", 1}, {three, "-- pypython", 1},
			{three + " " + lws, "-- bash", 1}, {three, "-- env python3 main.py", 1},
		}},
		{
			"the same, with `--nnodes`, `--rdzv-*` or `--standalone`", "any", "1, as torchrun does", []job{
				{three, "--nnodes 1 main.py", 1}, {three, "--nnodes=1:1 -- python3 main.py", 1},
				{three, "--standalone main.py", 1}, {three, "--rdzv_backend c10d main.py", 1},
				{three, "--rdzv-id=x main.py", 1}, {three, "--rdzv_endpoint=node1 --nnodes=2 main.py", 1},
				{three, "--standalone --nproc_per_node=2 main.py", 2},
			},
		},
		{"the same", "`python3 -m torch.distributed.run`", "1, which starts the others", []job{
			{three, "-- python3 -m torch.distributed.run main.py", 1},
		}},
		{"a platform with a number, such as PET_NPROC_PER_NODE", "any", "this number", []job{
			{three + " " + pet, "main.py", 2}, {three + " " + pet, "-- bash", 2},
			{three + " " + pet, "--nproc-per-node 1 main.py", 1},
		}},
		{"mpirun, srun", "any", "1 per task", []job{
			{three + " " + srun, "main.py", 1}, {three + " " + ompi + "1", "-- python3 main.py", 1},
			{three + " " + ompi + "1", "--nproc-per-node gpu -- python3 main.py", 3},
		}},
		{
			"mpirun, srun with several tasks per node, and `--launcher none`", "any",
			"1 per task, each a job of its own", []job{
				{three + " " + srun, "--launcher none main.py", 1},
				{three + " OMPI_COMM_WORLD_LOCAL_SIZE=3 " + ompi + "3", "--launcher none main.py", 1},
				{three + " OMPI_COMM_WORLD_LOCAL_SIZE=1 " + ompi + "1", "--launcher none main.py", 3},
				{three + " " + worker, "--launcher none main.py", 1},
			},
		},
	} {
		page += "| " + row.by + " | " + row.program + " | " + row.workers + " |\n"
		for _, j := range row.jobs {
			environ := append(strings.Fields(j.environ), "PATH="+bin)
			l := planned(t, dir, environ, strings.Fields(j.command))
			if l.Workers != j.workers || len(l.Problems) > 0 {
				t.Errorf("%s: %s rdzv exec %s: %d workers, want %d; problems %v",
					row.by, j.environ, j.command, l.Workers, j.workers, l.Problems)
			}
		}
	}
	pagetest.Part(t, file, "workers", page)
}

// An embedding program that says nothing has one worker.
func TestWorkersOfZeroConfig(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "bin/python3")
	l, err := agent.Plan(agent.Config{
		Program: []string{"python3"},
		Environ: []string{"PATH=" + filepath.Join(dir, "bin"), "CUDA_VISIBLE_DEVICES=0,1", "HOME=" + dir},
	})
	if err != nil || l.Workers != 1 {
		t.Errorf("%+v, %v", l, err)
	}
}

// Which python runs, and why: the other table of the page. The folders are environments with a
// python 3.11: plain has no torch, no has no python, unknown has one of which nothing can be told.
func TestGeneratedPythons(t *testing.T) {
	file, dir := placementPage(t), t.TempDir()
	for _, name := range []string{"torch", "venv", "plain"} {
		write(t, dir, name+"/bin/python3.11", name+"/bin/python3->python3.11",
			name+"/bin/python->python3", name+"/lib/python3.11/os.py")
	}
	const torch = "/lib/python3.11/site-packages/torch/__init__.py"
	write(t, dir, "torch"+torch, "venv"+torch, "pipx/bin/python3", "no/bin/rdzv", "unknown/bin/python3",
		"modules/torch/__init__.py")
	t.Chdir(dir)
	const active = "VIRTUAL_ENV=/some"
	type job struct {
		path, rdzv string // folders
		environ    string
		command    string
		python     string // file in dir
		why        string
	}
	const first, own = "the first in PATH", "that of python -m rdzv"
	const noTorch = "beside rdzv, because {dir}/plain/bin/python3 of PATH has no torch"
	page := "| `python3` of PATH | your environment | the directory of rdzv | python that runs |\n" +
		"|---|---|---|---|\n"
	for _, row := range []struct {
		row  string
		jobs []job
	}{
		{"| has torch | any | any | that of PATH |", []job{
			{"torch", "venv", "", "-- python3", "torch/bin/python3", first},
			{"torch", "torch", "", "-- python3", "torch/bin/python3", first},
			{"torch", "venv", active, "main.py", "torch/bin/python3", first},
			{"plain", "venv", "PYTHONPATH={dir}/modules", "-- python3", "plain/bin/python3", first},
		}},
		{
			"| has no torch, or is missing | not active | its python has torch | that of the directory |",
			[]job{
				{"plain", "venv", "", "-- python3 main.py", "venv/bin/python3", noTorch},
				{"plain", "venv", "", "-- python main.py", "venv/bin/python",
					strings.ReplaceAll(noTorch, "python3", "python")},
				{"plain", "venv", "VIRTUAL_ENV=", "main.py", "venv/bin/python3", noTorch},
				{"plain", "venv", "", "-m package", "venv/bin/python3", noTorch},
				{"plain", "venv", "", "--export HOME,A=PATH main.py", "venv/bin/python3", noTorch},
				{"no", "venv", "", "-- python3", "venv/bin/python3", "beside rdzv, because PATH has none"},
			},
		},
		{"| has no torch | not active | no python, or one without torch | that of PATH |", []job{
			{"plain", "no", "", "-- python3", "plain/bin/python3", first},
			{"plain", "pipx", "", "-- python3", "plain/bin/python3", first},
			{"plain", "plain", "", "-- python3", "plain/bin/python3", first},
		}},
		{
			"| has no torch | VIRTUAL_ENV or CONDA_PREFIX is set | its python has torch | that of PATH |",
			[]job{
				{"plain", "venv", active, "-- python3", "plain/bin/python3", first},
				{"plain", "venv", "CONDA_PREFIX=/some", "main.py", "plain/bin/python3", first},
			},
		},
		{"| has no torch | not active, `--export PATH` | its python has torch | that of PATH |", []job{
			{"plain", "venv", "", "--export PATH -- python3", "plain/bin/python3", first},
			{"plain", "venv", "", "--export HOME,PATH=/x -- python3", "plain/bin/python3", first},
		}},
		{"| any | any, `python3 -m rdzv exec` | any | that of this command |", []job{
			{"torch", "venv", "RDZV_PYTHON={dir}/plain/bin/python3", "-- python3 a", "plain/bin/python3", own},
			{"plain", "venv", "RDZV_PYTHON={dir}/plain/bin/python3 " + active, "main.py",
				"plain/bin/python3", own},
		}},
	} {
		page += row.row + "\n"
		for _, j := range row.jobs {
			filled := strings.NewReplacer("{dir}", dir)
			list := filepath.Join(dir, j.path, "bin") + ":/nonexistent"
			beside := filepath.Join(dir, j.rdzv, "bin")
			environ := append(strings.Fields(filled.Replace(j.environ)), "PATH="+list)
			write(t, dir, "main.py", "a")
			p, err := planned(t, beside, environ, strings.Fields(j.command)).Preview()
			why := filled.Replace(j.why)
			if want := filepath.Join(dir, j.python); err != nil || p.Python != want || p.Why != why {
				t.Errorf("%s: %+v: %s (%s), %v; want %s (%s)", row.row, j, p.Python, p.Why, err, want, why)
			}
			var want []envmap.KV
			if strings.HasPrefix(why, "beside") {
				want = []envmap.KV{{Name: "PATH", Value: beside + ":" + list}}
			}
			isPath := func(kv envmap.KV) bool { return kv.Name == "PATH" && kv.Value != "/x" }
			got := slices.DeleteFunc(slices.Clone(p.Changes.Set), func(kv envmap.KV) bool { return !isPath(kv) })
			if !slices.Equal(got, want) {
				t.Errorf("%s: %+v: PATH is set to %q, want %q", row.row, j, got, want)
			}
		}
	}
	pagetest.Part(t, file, "pythons", page)

	// Nothing else is chosen: a python with a path, a command that runs one, one that is not known.
	for _, command := range []string{"-- plain/bin/python3 main.py", "-- python3.11 main.py"} {
		environ := []string{"PATH=" + filepath.Join(dir, "plain/bin")}
		p, err := planned(t, filepath.Join(dir, "venv/bin"), environ, strings.Fields(command)).Preview()
		if err != nil || p.Python != "" {
			t.Errorf("%s: %s (%s), %v", command, p.Python, p.Why, err)
		}
	}
	p, err := planned(t, filepath.Join(dir, "venv/bin"), nil, []string{"--", "python3"}).Preview()
	if err != nil || slices.ContainsFunc(p.Changes.Set, func(kv envmap.KV) bool { return kv.Name == "PATH" }) {
		t.Errorf("without PATH: %+v, %v", p.Changes.Set, err)
	}
	environ := []string{"PATH=" + filepath.Join(dir, "unknown/bin")}
	l := planned(t, filepath.Join(dir, "venv/bin"), environ, []string{"--", "python3"})
	if want := filepath.Join(dir, "unknown/bin/python3"); l.Path != want {
		t.Errorf("a python whose libraries are not known: %s runs, want %s", l.Path, want)
	}
}
