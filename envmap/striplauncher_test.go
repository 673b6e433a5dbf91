package envmap

import (
	"slices"
	"strings"
	"testing"
)

func TestOneWorkerPerTaskKeepsTheLaunchersVariables(t *testing.T) {
	for _, rec := range recordings {
		env := recorded(t, rec.name, 1)
		c := changes(t, env, second, TorchOptions{})
		if len(c.Unset) > 0 {
			t.Errorf("%s: %q removed", rec.name, c.Unset)
		}
		for _, kv := range c.Set {
			if _, there := env[kv.Name]; there {
				t.Errorf("%s: %s is changed", rec.name, kv.Name)
			}
		}
	}
}

// None of several workers of a task may appear to be that task to a program that reads the
// launcher's variables. The orders of reading are taken from source: accelerate's state.py (older
// and newer), Lightning's environments, MPI libraries.
func TestStripLauncher(t *testing.T) {
	readers := []struct {
		name, order string
		want        string // value of the first variable that is set; "" if none may be set
	}{
		{"accelerate, rank", "RANK PMI_RANK OMPI_COMM_WORLD_RANK MV2_COMM_WORLD_RANK", "5"},
		{"accelerate, size", "PMI_SIZE OMPI_COMM_WORLD_SIZE MV2_COMM_WORLD_SIZE WORLD_SIZE", "8"},
		{"accelerate, local rank",
			"LOCAL_RANK MPI_LOCALRANKID OMPI_COMM_WORLD_LOCAL_RANK MV2_COMM_WORLD_LOCAL_RANK", "1"},
		{"accelerate, local size",
			"MPI_LOCALNRANKS OMPI_COMM_WORLD_LOCAL_SIZE MV2_COMM_WORLD_LOCAL_SIZE", ""},
		{"Lightning, torchelastic before Slurm", "TORCHELASTIC_RUN_ID SLURM_NTASKS", "job-7"},
		{"Lightning, node rank", "GROUP_RANK", "1"},
		{"Slurm's readers", "SLURM_NTASKS SLURM_PROCID SLURM_LOCALID", ""},
		{"Open MPI's library",
			"PMIX_NAMESPACE PMIX_RANK OMPI_MCA_ess OMPI_MCA_orte_hnp_uri SLURM_STEP_ID " +
				"SLURM_STEPID", ""},
		{"MPICH's library", "PMI_FD PMI_PORT PMI_RANK PMI_SIZE PMI_ID", ""},
		{"LSF's readers", "JSM_NAMESPACE_RANK", ""},
	}
	for _, rec := range recordings {
		env := recorded(t, rec.name, 1)
		c := changes(t, env, second, TorchOptions{StripLauncher: true})
		worker := ParseEnv(c.Apply(entries(env)))
		for _, r := range readers {
			if name := worker.first(strings.Fields(r.order)...); worker[name] != r.want {
				t.Errorf("%s: reader %q finds %s=%s, want %q", rec.name, r.name, name, worker[name],
					r.want)
			}
		}
	}
	kept := ParseEnv(strings.Fields("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " +
		"SLURM_JOB_ID=3 SLURM_NODEID=1 SLURM_JOB_NODELIST=n[1-2]"))
	if c := changes(t, kept, second, TorchOptions{StripLauncher: true}); len(c.Unset) > 0 {
		t.Errorf("%q removed", c.Unset)
	}
}

func entries(env Env) []string {
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// The effect of PMIX_MCA_gds is tested with a real mpirun; this tests when it is set.
func TestSecondMPIProgram(t *testing.T) {
	id := second
	id.Launcher = OpenMPI4
	if c := changes(t, Env{}, id, TorchOptions{}); c.value("PMIX_MCA_gds") != "hash" {
		t.Error("PMIX_MCA_gds is not set")
	}
	if c := changes(t, Env{"PMIX_MCA_gds": "ds21"}, id, TorchOptions{}); c.sets("PMIX_MCA_gds") {
		t.Error("the user's PMIX_MCA_gds is replaced")
	}
	if c := changes(t, Env{}, id, TorchOptions{StripLauncher: true}); c.sets("PMIX_MCA_gds") {
		t.Error("PMIX_MCA_gds is set in a worker that is not a task")
	}
	id.Launcher = OpenMPI5
	if c := changes(t, Env{}, id, TorchOptions{}); c.sets("PMIX_MCA_gds") {
		t.Error("PMIX_MCA_gds is set under Open MPI 5")
	}
}

func TestAsOpenMPI(t *testing.T) {
	for _, own := range []bool{false, true} {
		c := changes(t, recorded(t, "openmpi4-1pernode", 1), second,
			TorchOptions{AsOpenMPI: true, StripLauncher: own})
		for name, want := range map[string]string{
			"RANK": "5", "SIZE": "8", "LOCAL_RANK": "1", "LOCAL_SIZE": "4", "NODE_RANK": "1",
		} {
			if got := c.value("OMPI_COMM_WORLD_" + name); got != want {
				t.Errorf("OMPI_COMM_WORLD_%s=%s, want %s", name, got, want)
			}
			if slices.Contains(c.Unset, "OMPI_COMM_WORLD_"+name) {
				t.Errorf("OMPI_COMM_WORLD_%s is both set and removed", name)
			}
		}
	}
	if c := changes(t, Env{}, second, TorchOptions{}); c.sets("OMPI_COMM_WORLD_RANK") {
		t.Error("OMPI_COMM_WORLD_RANK is set without AsOpenMPI")
	}
}
