package integration

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// podmanRun is what docs/start/containers.md advises. With --env-host the host's PATH would replace
// the image's (podman 4.3.1).
var podmanRun = []string{"run", "--rm", "--network", "host", "-e", "RDZV_*", "-e", "SLURM_*",

	"-e", "OMPI_*", "-e", "PMIX_*", "-e", "PRTE_*", "-e", "PMI_*", "-e", "MPI_*"}

// passPMI lets podman pass the PMI descriptor, with --preserve-fds 1.
const passPMI = "exec 3>&$PMI_FD; PMI_FD=3 exec"

// The page advises the command lines that these tests run.
func TestContainersPage(t *testing.T) {
	text, err := os.ReadFile("../docs/start/containers.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "\\\n", "")), " ")
	run := "podman " + strings.Join(podmanRun, " ")
	run = regexp.MustCompile(`\w+_\*`).ReplaceAllString(run, "'$0'")
	for _, line := range []string{run, passPMI + " podman run --preserve-fds 1", "ch-run DIR -- rdzv exec"} {
		if !strings.Contains(page, line) {
			t.Errorf("the page does not have %q", line)
		}
	}
}

// Each rank is a container of podman with the launcher's network and variables, and rdzv is its
// process 1, as docs/start/containers.md advises.
func TestPodman(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(p *podman, program []string) []string{
		"no launcher": func(p *podman, program []string) []string {
			return p.run(nil, rdzvInside([]string{"--nproc-per-node", "2"}, program))
		},
		"openmpi": func(p *podman, program []string) []string {
			return append(mpirunCommand(2), p.run(nil, rdzvInside(nil, program))...)
		},
		"hydra": func(p *podman, program []string) []string {
			line := p.run([]string{"--preserve-fds", "1"}, rdzvInside(nil, program))
			bash := []string{"bash", "-c", passPMI + ` "$@"`, "bash"}
			return slices.Concat([]string{"mpiexec.hydra", "-n", "2"}, bash, line)
		},
		"srun": func(p *podman, program []string) []string {
			line := []string{"on", "1", "srun", "--overcommit", "-n", "2"}
			return p.ownCluster().slurm(append(line, p.run(nil, rdzvInside(nil, program))...)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPodman(t, name == "srun")
			job := p.start(start(p, sh(`echo "rank $RANK of $WORLD_SIZE, pid 1 is $(cat /proc/1/comm)"`))...)
			job.checkCode(0)
			for rank := range 2 {
				job.waitFor(fmt.Sprintf("rank %d of 2, pid 1 is rdzv", rank))
			}
			job = p.start(start(p, sh(`[ $RANK = 1 ] && exit 7; exec sleep 1000`))...)
			job.checkCode(7)
			job.waitFor("rank 1 of 2 failed first")
			p.checkNoContainers()
		})
	}
}

// A user who is not root needs no other command line, and no entry in /etc/subuid.
func TestPodmanRootless(t *testing.T) {
	t.Parallel()
	p := newPodman(t, false)
	p.env = append(p.env, "XDG_RUNTIME_DIR="+p.dir("run"))
	p.as = asNobody(t, p.place, nil)
	line := p.run(nil, rdzvInside(nil, sh(`echo "rank $RANK of $WORLD_SIZE"; [ $RANK = 1 ] && exit 7
		exec sleep 1000`)))
	job := p.start(slices.Concat(p.as, mpirunCommand(2), line)...)
	job.checkCode(7)
	job.waitFor("rank 1 of 2")
	p.checkNoContainers()
}

// A podman that is killed leaves its container, but mpirun ends the other one, whose agent gets
// SIGTERM from its podman: it ends the job, also in the container that was left.
func TestPodmanKilled(t *testing.T) {
	t.Parallel()
	p := newPodman(t, false)
	p.env = append(p.env, lateSIGKILL) // podman of a user needs longer to forward SIGTERM
	line := p.run(nil, rdzvInside(nil, sh("echo rank $RANK runs; exec sleep 1000")))
	job := p.start(append(mpirunCommand(2), line...)...)
	job.waitFor("rank 0 runs")
	job.waitFor("rank 1 runs")
	kill(p.client("run"))
	job.checkCode(137)
	p.checkNoContainers()
}

// What "podman exec" starts does not end with it, neither by SIGTERM nor by SIGKILL: the agent has
// a session of its own, and only the container's end is its end.
func TestPodmanExec(t *testing.T) {
	t.Parallel()
	p := newPodman(t, false)
	container := p.start(p.run([]string{"--name", "node"}, sh("echo it runs; exec sleep 1000"))...)
	container.waitFor("it runs")
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		agent := p.startWith([]string{"RDZV_TAG=true"}, p.podman("exec", "-e", "RDZV_*", "node",
			"rdzv", "exec", "--", "sh", "-c", "echo $$ runs; exec sleep 1000")...)
		agent.waitFor("[0 ") // a variable of rdzv's has passed
		if err := syscall.Kill(p.client("exec"), signal); err != nil {
			t.Fatal(err)
		}
		<-agent.done
	}
	if agents := p.inContainers("rdzv"); agents != 2 {
		t.Errorf("%d agents run, want 2", agents)
	}
	p.stop("node")
	<-container.done
	p.checkNoContainers()
}

// The container of a podman that is the worker of an agent ends with the job, although conmon, its
// parent, has left podman. podman does not learn of it, as the warning says.
func TestPodmanOutside(t *testing.T) {
	t.Parallel()
	p := newPodman(t, false)
	p.output("ps") // without root it starts podman's process that keeps the namespaces, which ends
	// with the job if it is a descendant of rdzv
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		worker := p.run(nil, sh("trap : TERM; echo it runs; while :; do sleep 1; done"))
		job := p.start(rdzvExec([]string{"--grace", "1s"}, worker)...)
		job.waitFor("it runs")
		if p.inContainers("sh") == 0 {
			t.Error("the worker is not in a container")
		}
		job.signal(signal)
		job.checkCode(128 + int(signal))
		job.waitFor("podman does not remove the container")
		if !eventually(waitLimit, func() bool { return p.inContainers("sh") == 0 }) {
			t.Error("the worker in the container runs on")
		}
	}
	if p.output("ps", "--quiet") == "" {
		t.Error("podman knows that the containers have ended: the warning is wrong")
	}
	p.removeContainers() // and that process
	p.removeFiles()      // of the agent that was killed
}

// podman stop, as docker stop, signals process 1 of the container, which is the agent, and waits.
func TestPodmanStop(t *testing.T) {
	t.Parallel()
	p := newPodman(t, false)
	const saves = `n=0; trap 'n=$((n+1))' TERM; echo rank $RANK runs
		while [ $n = 0 ]; do sleep 0.1; done
		sleep 2; echo rank $RANK has saved after $n signals`
	line := p.run([]string{"--name", "node"}, rdzvInside([]string{"--nproc-per-node", "2"}, sh(saves)))
	job := p.start(line...)
	job.waitFor("rank 0 runs")
	job.waitFor("rank 1 runs")
	p.start(p.podman("stop", "--time", "20", "node")...).checkCode(0)
	job.checkCode(143)
	for _, rank := range []string{"0", "1"} {
		job.waitFor("rank " + rank + " has saved after 1 signals")
	}
	p.checkNoContainers()
}

func sh(script string) []string { return []string{"sh", "-c", script} }

// rdzvInside is rdzvExec in a container of rootFS.
func rdzvInside(flags, program []string) []string {
	return slices.Concat([]string{"rdzv", "exec"}, flags, []string{"--"}, program)
}
