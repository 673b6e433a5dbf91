package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A batch job is cancelled: what the script runs, what is sent to it, and what each worker gets of that.
type cancelCase struct {
	name    string
	script  []string // before rdzv exec
	workers int
	flags   []string
	scancel []string
	gets    string
	says    string // rdzv, on every agent that is told to end
}

// A body is a batch script as users write them, which has more to do after the job.
func body(line ...string) []string {
	return append([]string{"sh", "-c", `"$@"; echo "$? is what it ended with"`, "sh"}, line...)
}

func cancelCases() []cancelCase {
	return []cancelCase{
		{"srun", body("srun"), workersPerJob, nil, nil, "SIGTERM", "received SIGTERM"},
		{"alone", body(), 2, []string{"--nproc-per-node", "2"}, nil, "SIGTERM", "received SIGTERM"},
		{"exec", nil, 2, []string{"--nproc-per-node", "2"}, nil, "SIGTERM", "received SIGTERM"},
		{"mpirun", body(mpirun), workersPerJob, nil, nil, "SIGTERM", "received SIGTERM"},

		// Steps get it, the script does not.
		{"srun, USR1", body("srun"), workersPerJob, nil, []string{"--signal=USR1"}, "SIGUSR1", ""},
		// The script gets it, dies of it, and leaves rdzv behind.
		{"alone, USR1 to the script", body(), 2, []string{"--nproc-per-node", "2"}, []string{"--signal=USR1", "--batch"}, "SIGTERM", "slurmstepd ("},
	}
}

// scancel ends a batch job at once, everywhere, and tells each worker once.
func TestCancelledBatch(t *testing.T) {
	b := newBed(t, 2)
	b.withSlurm(1, 2)
	for _, c := range cancelCases() {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) { b.stay(t).cancel(c) })
	}
}

func (s *stay) cancel(c cancelCase) {
	prog := rdzvExec(c.flags, actor("count", s.dir("job")))
	batch := s.batch([]string{"-N2", "-n4", "--ntasks-per-node=2"}, append(c.script, prog...)...)
	defer func() {
		if s.t.Failed() {
			s.t.Logf("the script has said: %s", s.batchOutput())
		}
	}()
	workers := records(s.t, filepath.Join(s.root, "job"), c.workers)
	s.scancel(workers[0].Env["SLURM_JOB_ID"], c.scancel...)
	if strings.HasPrefix(c.gets, "SIGUSR") { // which ends nothing
		s.scancel(workers[0].Env["SLURM_JOB_ID"])
		c.gets += " SIGTERM"
	}
	batch.code() // Slurm's own: what has ended the script, if anything has
	for _, worker := range workers {
		file := filepath.Join(s.root, "job", worker.Env["RANK"]+".signals")
		var got []byte
		eventually(waitLimit, func() (there bool) {
			var err error
			got, err = os.ReadFile(file)
			return err == nil
		})
		if string(got) != c.gets {
			s.t.Errorf("rank %s got %q, want %q", worker.Env["RANK"], got, c.gets)
		}
	}
	if said := s.batchOutput(); !strings.Contains(said, c.says) {
		s.t.Errorf("nobody said %q in %q", c.says, said)
	}
}

func (s *stay) scancel(id string, options ...string) {
	s.t.Helper()
	if code := s.slurm(1, append(append([]string{"scancel"}, options...), id)...).code(); code != 0 {
		s.t.Fatalf("scancel ended with %d", code)
	}
}
