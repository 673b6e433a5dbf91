package integration

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// jobStatus is what rdzv status --json prints about a job, as far as the tests need it.
type jobStatus struct {
	State  string
	Ending string
	Joined int
	Ranks  []struct {
		Rank int
		Host string
		PID  int
		Init *bool    `json:"reached_init"`
		CPU  *float64 `json:"cpu"`

		State string
	}
}

// status runs rdzv status on a host, in an environment that has nothing of the job's, and returns
// what it prints. It exits with code.
func (j *job) status(host, code int, args ...string) (stdout, stderr string) {
	j.t.Helper()
	status := []string{"env", "-i", "PATH=" + os.Getenv("PATH"), *rdzvBin, "status"}
	line := j.cluster.on(host, append(status, args...)...)
	cmd := exec.Command(line[0], line[1:]...)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed && exit.ExitCode() == code {
		err = nil
	}
	if err != nil || cmd.ProcessState.ExitCode() != code {
		j.t.Errorf("rdzv status exited with %v, want %d: %s%s", err, code, &out, &errOut)
	}
	return out.String(), errOut.String()
}

// statusOf is the status of the only job with this name that is found on a host.
func (j *job) statusOf(host int, name string) (s jobStatus) {
	j.t.Helper()
	text, _ := j.status(host, 0, "--job", name, "--json")
	var report struct{ Jobs []jobStatus }
	if err := json.Unmarshal([]byte(text), &report); err != nil || len(report.Jobs) != 1 {
		j.t.Fatalf("%d jobs, %v: %s", len(report.Jobs), err, text)
	}
	return report.Jobs[0]
}

// The status of a job tells on every host which process each rank is and whether it has reached
// init_process_group, under every launcher. An agent that is stopped does not answer, which the
// status says; the job goes on.
func TestStatus(t *testing.T) {
	t.Parallel()
	c := newJobCluster(t)
	forEachJobLauncher(t, func(t *testing.T, launcher string, hosts int) {
		files := newPlace(t).root
		name, late := "status-"+launcher, filepath.Join(files, "late")
		j := c.startJob(t, launcher, hosts,
			[]string{"--job", name, "--peer-timeout", "1m"}, worker("reach", jobDir, late, late),
			"env", "RDZV_EVENTS="+filepath.Join(files, "events"))
		j.workers = records(t, j.records(), workersPerJob)
		for host := 1; host <= hosts; host++ {
			s := j.statusOf(host, name)
			if s.State != "running" || len(s.Ranks) != workersPerJob {
				t.Fatalf("status on node%d: %+v", host, s)
			}
			for i, r := range s.Ranks {
				node := "node" + strconv.Itoa(1+i*hosts/workersPerJob)
				if r.Rank != i || r.PID != j.workers[i].PID || r.Host != node || r.CPU == nil ||
					r.State != "running" || r.Init == nil || *r.Init != (i != lastRank) {
					t.Errorf("status on node%d of rank %d, pid %d on %s: %+v",
						host, i, j.workers[i].PID, node, r)
				}
			}
		}
		if hosts == 2 {
			j.checkFrozenStatus(name)
		} else {
			j.checkStatusOfOtherUser()
		}
		createFile(t, late)
		j.checkCommands(0)
		checkEvents(t, filepath.Join(files, "events"))
		if text, _ := j.status(1, 1, "--job", name); text != "" {
			t.Errorf("after the end: %q", text)
		}
		j.removeLeftovers()
	})
}

// checkFrozenStatus stops the agent of the last two ranks, looks at the status from both hosts, and continues
// it.
func (j *job) checkFrozenStatus(name string) {
	frozen, _ := j.lastNode()
	j.signal(frozen, syscall.SIGSTOP)
	text, _ := j.status(1, 0, "--job", name)
	lines := strings.Split(text, "\n")
	row := func(rank int, word string) {
		ofRank := func(s string) bool { return strings.HasPrefix(s, strconv.Itoa(rank)+" ") }
		if i := slices.IndexFunc(lines, ofRank); i < 0 ||
			!slices.Contains(strings.Fields(lines[i]), word) {
			j.t.Errorf("the row of rank %d does not have %q: %s", rank, word, text)
		}
	}
	row(0, "running")
	row(lastRank-1, "answer")
	row(lastRank, "answer")
	if !strings.Contains(text, "2-3 (node2): rdzv is stopped there") {
		j.t.Errorf("the agent that does not answer is not named: %s", text)
	}
	_, errors := j.status(2, 1, "--job", name)
	if !strings.Contains(errors, "no answer from agent") ||
		!strings.Contains(errors, strconv.Itoa(frozen)) {
		j.t.Errorf("on its own host agent %d is not named: %s", frozen, errors)
	}
	j.signal(frozen, syscall.SIGCONT)
	delete(j.signalled, frozen)
}

// checkStatusOfOtherUser asks as another user: as root, or if the job is root's as another one.
func (j *job) checkStatusOfOtherUser() {
	line := asNobody(j.t, newPlace(j.t), []string{*rdzvBin, "status"})
	if os.Geteuid() != 0 {
		line = append([]string{"sudo", "-n"}, line...)
	}
	line = j.cluster.on(1, line...)
	text, err := exec.Command(line[0], line[1:]...).CombinedOutput()
	exit, failed := errors.AsType[*exec.ExitError](err)
	refused := strings.Contains(string(text), " has no job on node1, but user ")
	if !failed || exit.ExitCode() != 1 || !refused {
		j.t.Errorf("another user's rdzv status: %v: %s", err, text)
	}
}

// With --all root sees the job of another user.
func TestStatusOfAllUsers(t *testing.T) {
	p := newPlace(t)
	line := []string{*rdzvBin, "exec", "--job", "of-another", "--", "sh", "-c",
		"echo runs; exec sleep 1000"}
	ask := []string{*rdzvBin, "status", "--all", "--job", "of-another"}
	if os.Geteuid() == 0 {
		line = asNobody(t, p, line)
	} else {
		ask = append([]string{"sudo", "-n"}, ask...)
	}
	job := p.start(line...)
	job.waitFor("runs")
	text, err := exec.Command(ask[0], ask[1:]...).CombinedOutput()
	if err != nil || !strings.HasPrefix(string(text), "job of-another of user ") {
		t.Errorf("rdzv status --all: %v: %s", err, text)
	}
	job.signal(syscall.SIGTERM)
	job.checkCode(128 + int(syscall.SIGTERM))
}

// checkEvents checks that exactly one agent has written its events to a file: the one that hosts
// the store.
func checkEvents(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var e struct {
			Type  string
			Event struct{ Hosting bool }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("%v: %q", err, line)
		}
		if count[e.Type]++; e.Type == "job_ended" && !e.Event.Hosting {
			t.Error("an agent that does not host the store has written its events")
		}
	}
	if count["placed"] != 1 || count["job_ended"] != 1 || count["finished"] != 1 {
		t.Errorf("the events are %v, want those of one agent", count)
	}
}
