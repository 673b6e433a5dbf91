package integration

import (
	"path/filepath"
	"strings"
	"testing"
)

// Tasks of one mpiexec run different programs: they are one job, also if the store is named.
func TestHydraProgramsDiffer(t *testing.T) {
	for name, flags := range map[string][]string{
		"no store": {"--join-timeout", "30s"}, "named store": {"--join-timeout", "30s", "--store", "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			dir := p.dir("records")
			line := hydra(p, 1, flags, worker("record", dir))
			line = append(line, ":", "-n", "2")
			other := append([]string{"env", "PROGRAM=other"}, worker("record", dir)...)
			line = append(line, rdzvExec(flags, other)...)
			p.start(line...).checkCode(0)
			all := records(t, dir, 3)
			checkEnvironments(t, all)
			if all[0].Env["PROGRAM"] != "" || all[1].Env["PROGRAM"] != "other" {
				t.Error("the programs do not differ")
			}
			if run := all[0].Env["RDZV_RUN_ID"]; !strings.HasPrefix(run, "hydra-") {
				t.Errorf("the job is %q, want the launcher's name", run)
			}
		})
	}
}

// Two mpiexecs of one user run the same command at the same time on one host: they are two jobs.
func TestHydraJobsOfOneCommandStayApart(t *testing.T) {
	p := newPlace(t)
	dir := p.dir("both")
	script := []string{"sh", "-c", `"$0" worker until "$1/$PLACE" "$1/end"`, self, dir}
	var jobs []*process
	runs := map[string]bool{}
	for _, place := range []string{"one", "two"} {
		p.dir("both/" + place)
		line := hydra(p, 2, []string{"--join-timeout", "30s"}, script)
		jobs = append(jobs, p.startWith([]string{"PLACE=" + place}, line...))
	}
	for _, place := range []string{"one", "two"} {
		all := records(t, filepath.Join(dir, place), 2)
		checkEnvironments(t, all)
		runs[all[0].Env["RDZV_RUN_ID"]] = true
	}
	if len(runs) != 2 {
		t.Errorf("both jobs are %v", runs)
	}
	writeFiles(t, dir, "end")
	checkCodes(0, jobs...)
}
