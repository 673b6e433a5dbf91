package envmap

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A recording is a run of a real launcher. hosts has one character per rank, the number of the host
// on which it ran. The expected placement follows from hosts, not from the variables.
type recording struct {
	name     string
	launcher Launcher
	hosts    string
	sets     string // which numbers of nodes the launcher sets: "nodes", "nodes+rank" or ""
}

var recordings = []recording{
	{"openmpi4-headrank", OpenMPI4, "1122", "nodes"},
	{"openmpi4-headrank-ip", OpenMPI4, "1122", "nodes"},
	{"openmpi4-launchernode", OpenMPI4, "2233", "nodes"},
	{"openmpi4-launchernode-ip", OpenMPI4, "2233", "nodes"},
	{"openmpi4-1pernode", OpenMPI4, "12", "nodes"},
	{"openmpi4-mpmd", OpenMPI4, "2233", "nodes"},
	{"openmpi4-insbatch", OpenMPI4, "1122", "nodes"},
	{"openmpi4-interleaved", OpenMPI4, "12313", "nodes"},
	{"openmpi4-uneven", OpenMPI4, "1222", "nodes"},

	{"openmpi5-single", OpenMPI5, "1111", ""},
	{"openmpi5-headrank", OpenMPI5, "1122", ""},
	{"openmpi5-headrank-ip", OpenMPI5, "1122", ""},
	{"openmpi5-launchernode", OpenMPI5, "2233", ""},
	{"openmpi5-launchernode-ip", OpenMPI5, "2233", ""},
	{"openmpi5-1pernode", OpenMPI5, "12", ""},
	{"openmpi5deb-single", OpenMPI5, "1111", ""},
	{"openmpi5deb-headrank", OpenMPI5, "1122", ""},
	{"openmpi5deb-launchernode", OpenMPI5, "2233", ""},
	{"openmpi5deb-launchernode-ip", OpenMPI5, "2233", ""},
	{"openmpi5deb-1pernode", OpenMPI5, "12", ""},
	{"openmpi5deb-insbatch", OpenMPI5, "1122", ""},
	{"prrtemain-headrank", OpenMPI5, "1122", ""},
	{"prrtemain-launchernode", OpenMPI5, "2233", ""},
	{"prrtemain-mpmd", OpenMPI5, "1122", ""},

	{"mpich4-headrank", Hydra, "1122", ""},
	{"mpich4-launchernode", Hydra, "2233", ""},
	{"mpich4-1pernode", Hydra, "12", ""},
	{"mpich4-mpmd", Hydra, "1122", ""},
	{"mpich4-insbatch", Hydra, "1122", ""},
	{"mpich4-uneven", Hydra, "1222", ""},

	{"slurm22-srun", Slurm, "1122", "nodes+rank"},
	{"slurm22-loginnode", Slurm, "2233", "nodes+rank"},
	{"slurm22-sbatch", Slurm, "1122", "nodes+rank"},
	{"slurm22-sbatch-1pernode", Slurm, "12", "nodes+rank"},
	{"slurm22-pmi2", SlurmPMI, "1122", "nodes+rank"},
	{"slurm22-pmi2-1pernode", SlurmPMI, "12", "nodes+rank"},
	{"slurm22-pmix", Slurm, "1122", "nodes+rank"},
	{"slurm22-gpus-per-task", Slurm, "1122", "nodes+rank"},
	{"slurm22-uneven", Slurm, "1123", "nodes+rank"},
	{"slurm22-cyclic", Slurm, "12111", "nodes+rank"},
	{"slurm22-arbitrary", Slurm, "2113", "nodes"},
	{"slurm22-het", Slurm, "1223", "nodes+rank"},
	{"slurm2411-srun", Slurm, "1122", "nodes+rank"},
	{"slurm2411-sbatch", Slurm, "1122", "nodes+rank"},
	{"slurm2411-pmix", Slurm, "1122", "nodes+rank"},
	{"slurm2411-gpus-per-task", Slurm, "1122", "nodes+rank"},
}

// otherRecordings have tests of their own.
var otherRecordings = []string{
	"openmpi5-prterun", "slurm22-batchbody", "slurm2411-batchbody",
	"slurm22-batchinstep1", "slurm22-batchinstep2",
}

func TestRecordedRanks(t *testing.T) {
	for _, rec := range recordings {
		t.Run(rec.name, func(t *testing.T) {
			job := ""
			for rank := range len(rec.hosts) {
				env := recorded(t, rec.name, rank)
				if host := hostOf(env); host != "" && host != "node"+rec.hosts[rank:rank+1] {
					t.Errorf("rank %d was recorded on %s, the table has node%c", rank, host,
						rec.hosts[rank])
				}
				p := detected(t, env, "")
				wantPlacement(t, p, rec.expected(rank))
				if rank > 0 && p.Job != job {
					t.Errorf("rank %d has job %q, rank 0 has %q", rank, p.Job, job)
				}
				job = p.Job
			}
		})
	}
}

// expected computes a rank's placement from the list of hosts.
func (rec recording) expected(rank int) Placement {
	host := rec.hosts[rank : rank+1]
	nodes := slices.Compact(slices.Sorted(strings.SplitSeq(rec.hosts, "")))
	p := Placement{
		Launcher:  rec.launcher,
		Rank:      rank,
		Size:      len(rec.hosts),
		LocalRank: strings.Count(rec.hosts[:rank], host),
		LocalSize: strings.Count(rec.hosts, host),
		NodeRank:  Unknown,
		Nodes:     Unknown,
	}
	if rec.sets != "" || len(nodes) == 1 {
		p.Nodes = len(nodes)
	}
	switch {
	case rec.sets == "nodes+rank":
		p.NodeRank = slices.Index(nodes, host)
	case p.Nodes == 1:
		p.NodeRank = 0
	case p.Nodes == p.Size:
		p.NodeRank = rank
	}
	return p
}

// wantPlacement compares the launcher and the numbers.
func wantPlacement(t *testing.T, got, want Placement) {
	t.Helper()
	if a, b := numbersOf(got), numbersOf(want); a != b {
		t.Errorf("got  %s\nwant %s", a, b)
	}
}

func numbersOf(p Placement) string {
	text := string(p.Launcher)
	for _, n := range numbers {
		text += ", " + n.what + " " + strconv.Itoa(*n.in(&p))
	}
	return text
}

// Every recorded environment has a row in the table or a test of its own.
func TestEveryRecordingIsUsed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.env")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	ranks := map[string]int{}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), "-rank")
		ranks[name]++
	}
	for _, rec := range recordings {
		if ranks[rec.name] != len(rec.hosts) {
			t.Errorf("%s has %d files, but %d ranks in the table", rec.name, ranks[rec.name],
				len(rec.hosts))
		}
		delete(ranks, rec.name)
	}
	for _, name := range otherRecordings {
		delete(ranks, name)
	}
	for _, c := range platformCases {
		if ranks["platform-"+c.name] != c.nodes {
			t.Errorf("%s has %d files, want %d", c.name, ranks["platform-"+c.name], c.nodes)
		}
		delete(ranks, "platform-"+c.name)
	}
	if len(ranks) > 0 {
		t.Errorf("recordings without a test: %v", ranks)
	}
}

// Slurm is excluded: its recordings come from several clusters whose first job is 1.
func TestJobsOfDifferentRunsDiffer(t *testing.T) {
	runs := map[string]string{}
	for _, rec := range recordings {
		p := detected(t, recorded(t, rec.name, 0), "")
		if (p.Job == "") != (rec.launcher == Hydra) {
			t.Errorf("%s: job %q", rec.name, p.Job)
		}
		if rec.launcher != OpenMPI4 && rec.launcher != OpenMPI5 {
			continue
		}
		if other := runs[p.Job]; other != "" {
			t.Errorf("%s and %s have the same job %s", rec.name, other, p.Job)
		}
		runs[p.Job] = rec.name
	}
}

// recorded reads the environment of one rank.
func recorded(t testing.TB, name string, rank int) Env {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + "-rank" + strconv.Itoa(rank) + ".env")
	if err != nil {
		t.Fatal(err)
	}
	return ParseEnv(strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"))
}

// hostOf returns the host name that the launcher set.
func hostOf(env Env) string {
	return env[env.first("PMIX_HOSTNAME", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "SLURMD_NODENAME")]
}

func detected(t testing.TB, env Env, choice Launcher) Placement {
	t.Helper()
	p, err := Detect(env, choice)
	if err != nil {
		t.Fatalf("Detect: %v", err)
	}
	return p
}
