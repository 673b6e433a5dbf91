package integration

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Two jobs of one user on the same hosts at the same time never meet, and a script under one mpirun or mpiexec may run
// one job after another, though its ranks leave each of them at different times.
func TestSeveralJobsOnHosts(t *testing.T) {
	b := newBed(t, 2, "--docker")
	b.withSlurm(1, 2)
	openMPI := func(s *stay, line []string) *process {
		return s.on(1, s.openMPI(append([]string{"--host", "node1:2,node2:2", "-np", "4"}, line...)...)...)
	}
	hydra := func(s *stay, line []string) *process {
		return s.on(1, s.hydra(append([]string{"-hosts", "node1,node2", "-ppn", "2", "-np", "4"}, line...)...)...)
	}
	slurm := func(s *stay, line []string) *process {
		return s.slurm(1, append([]string{"srun", "-O", "-N2", "-n4", "--ntasks-per-node=2"}, line...)...)
	}
	for name, run := range map[string]func(*stay, []string) *process{"openmpi": openMPI, "hydra": hydra, "slurm": slurm} {
		t.Run("atOnce/"+name, func(t *testing.T) { atOnceOnHosts(t, b, run) })
		t.Run("inARow/"+name, func(t *testing.T) { inARow(t, b.stay(t), run) })
	}
	t.Run("inARowOneFails", func(t *testing.T) { secondFails(t, b.stay(t), openMPI) })
}

func atOnceOnHosts(t *testing.T, b *bed, run func(*stay, []string) *process) {
	s := b.stay(t)
	var jobs []*process
	var dirs []string
	for _, name := range []string{"one", "two", "three"} {
		dirs = append(dirs, s.dir(name))
		jobs = append(jobs, run(s, rdzvExec(joinSoon, peerLine(s.dir(name)))))
	}
	runs := map[string]bool{}
	for i, job := range jobs {
		if code := job.code(); code != 0 {
			t.Errorf("a job ended with %d", code)
		}
		all := records(t, dirs[i], 4)
		checkLayout(t, all, make(layout, 4))
		runs[all[0].Env["RDZV_RUN_ID"]] = true
	}
	if len(runs) != len(jobs) {
		t.Errorf("%d jobs were told %d names", len(jobs), len(runs))
	}
}

// inARow runs three jobs under one launcher. Rank 1 leaves the second a second before the others, and the first late.
func inARow(t *testing.T, s *stay, run func(*stay, []string) *process) {
	script := `rdzv=$1 self=$2; shift 2
		for dir; do
			"$rdzv" exec --join-timeout 20s -- sh -c '"$0" peer "$1" && if [ $RANK = 1 ]; then exec sleep 1; fi' "$self" "$dir" || exit
		done`
	line := []string{"sh", "-c", script, "sh", *rdzvBin, self}
	dirs := []string{s.dir("one"), s.dir("two"), s.dir("three")}
	job := run(s, slices.Concat(line, dirs))
	if code := job.code(); code != 0 {
		t.Errorf("the script ended with %d", code)
	}
	for _, dir := range dirs {
		checkLayout(t, records(t, dir, 4), make(layout, 4))
	}
}

// secondFails: the first of three is fine, the second fails on one rank, and the third is not harmed by that.
func secondFails(t *testing.T, s *stay, run func(*stay, []string) *process) {
	script := `rdzv=$1 self=$2
		"$rdzv" exec --join-timeout 20s -- "$self" peer "$3" || exit 1
		"$rdzv" exec --join-timeout 20s -- "$self" worker exit "$4" 2 7
		echo "the second ended with $?"
		exec "$rdzv" exec --join-timeout 20s -- "$self" peer "$5"`
	job := run(s, []string{"sh", "-c", script, "sh", *rdzvBin, self, s.dir("one"), s.dir("two"), s.dir("three")})
	if code := job.code(); code != 0 {
		t.Errorf("the script ended with %d", code)
	}
	if told := len(job.linesWith("the second ended with 7")); told != 4 {
		t.Errorf("%d of 4 agents ended with 7", told)
	}
	for _, name := range []string{"one", "three"} {
		checkLayout(t, records(t, filepath.Join(s.root, name), 4), make(layout, 4))
	}
	records(t, filepath.Join(s.root, "two"), 4)
}

// A MASTER_PORT that somebody has is told before any worker starts, on one host and where rank 0 is on another.
func TestMasterPortTaken(t *testing.T) {
	b := newBed(t, 2)
	s := b.stay(t)
	free := filepath.Join(s.root, "free")
	taken := s.on(1, python, "-c", "import os,socket,sys,time\nl=socket.create_server(('', 29950)); print('listening')\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.1)", free)
	taken.waitFor("listening")
	for name, start := range map[string]func(line []string) *process{
		"byHand": func(line []string) *process { return s.on(1, line...) },
		"openmpi": func(line []string) *process {
			return s.on(1, s.openMPI(append([]string{"--host", "node1:1,node2:1", "-np", "2"}, line...)...)...)
		},
	} {
		job := start(s.exec("--master-port", "29950"))
		if code := job.code(); code == 0 {
			t.Errorf("%s: the job ended with 0", name)
		}
		if len(job.linesWith("rdzv:", "29950", "address already in use")) == 0 {
			t.Errorf("%s: nobody has said that the port is taken", name)
		}
	}
	if n := count(s.dir("job")); n != 0 {
		t.Errorf("%d workers have started", n)
	}
	if err := os.WriteFile(free, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-taken.done
	job := s.on(1, s.openMPI(append([]string{"--host", "node1:1,node2:1", "-np", "2"}, s.exec("--master-port", "29950")...)...)...)
	if code := job.code(); code != 0 {
		t.Errorf("with the port free, the job ended with %d", code)
	}
	all := records(t, filepath.Join(s.root, "job"), 2)
	if port, next := all[1].Env["MASTER_PORT"], all[0].Env["NEXT_PORT"]; port != "29950" || next != "free" {
		t.Errorf("MASTER_PORT is %s, and the port after it: %s", port, next)
	}
}
