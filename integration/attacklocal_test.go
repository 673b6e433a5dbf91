package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// twoJobs is a task of Hydra that runs two jobs. Between them it reads from the FIFO of its rank. If
// the tasks shared one agent, it would need nothing of Hydra, and leave no keeper.
const twoJobs = `
export RDZV_LAUNCHER=hydra
"$1" exec -- "$2" worker record "$3" || exit
read -r go < "$5/fifo$PMI_RANK" || exit
"$1" exec -- "$2" worker record "$4"`

// startTwoJobs starts that task on two ranks of node1, and waits until the first job has left a
// keeper.
func startTwoJobs(p *clusterPlace) *process {
	for _, name := range []string{"fifo0", "fifo1"} {
		if err := syscall.Mkfifo(filepath.Join(p.root, name), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	job := p.on(1, "mpiexec.hydra", "-n", "2", "sh", "-c", twoJobs, "sh", *rdzvBin, self,
		p.dir("one"), p.dir("two"), p.root)
	if !eventually(waitLimit, func() bool { return len(p.keepers()) == 1 }) {
		p.t.Fatalf("keepers: %q, want one", p.keepers())
	}
	return job
}

// startSecondJob lets the second job start, and returns how long it takes until it has started.
func startSecondJob(p *clusterPlace) time.Duration {
	started := time.Now()
	for _, name := range []string{"fifo0", "fifo1"} {
		if err := os.WriteFile(filepath.Join(p.root, name), []byte("go\n"), 0); err != nil {
			p.t.Fatal(err)
		}
	}
	records(p.t, p.dir("two"), 2)
	return time.Since(started)
}

// Another local user binds all addresses that a job could bind, as far as others can know them: the
// claims of all ports, and an address with which an agent under Hydra might find the key that an
// earlier one has left. Two jobs in a script under Hydra start as without the attack.
func TestAttackLocalUser(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1) // whose network namespace the attack does not leave
	times := map[bool]time.Duration{}
	for _, attacked := range []bool{false, true} {
		p := c.newPlace(t)
		if attacked {
			dir := filepath.Join(p.root, "tmp", "rdzv-"+strconv.Itoa(os.Geteuid()))
			user := asNobody(t, newPlace(t), []string{python, "-c", bindAll, dir})
			attacker := p.on(1, append([]string{"env", "-C", "/"}, user...)...)
			attacker.waitFor("all ports")
			group, err := syscall.Getpgid(attacker.pid()) // perhaps that of sudo
			if err != nil {
				t.Fatal(err)
			}
			defer syscall.Kill(-group, syscall.SIGKILL)
		}
		started := time.Now()
		job := startTwoJobs(p)
		times[attacked] = time.Since(started) + startSecondJob(p)
		job.checkCode(0)
	}
	delay := times[true] - times[false]
	if delay > 10*time.Second { // it takes CPU time from them
		t.Errorf("the attack delayed two jobs by %v, want at most 10s", delay)
	}
	attackRow(t, "another user binds all local addresses first", 1, delay, "both jobs ran")
}

// bindAll claims all ports, then binds the address of the keeper of each Hydra that it finds, until
// it is killed. The address depends on the runtime directory.
const bindAll = `
import glob, hashlib, os, resource, socket, sys, time
directory = hashlib.sha256(b"rdzv/v1 public name\0" + sys.argv[1].encode()).digest()[:8].hex()
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
first, last = map(int, open("/proc/sys/net/ipv4/ip_local_port_range").read().split())
bound = {}
def bind(name, kind):
    if name in bound: return
    bound[name] = socket.socket(socket.AF_UNIX, kind)
    try: bound[name].bind("\0rdzv/" + name)
    except OSError: return # it is in use
    if kind == socket.SOCK_STREAM: bound[name].listen()
block, n = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100, 0
for port in range(first, last + 1):
    if len(bound) == block:
        if os.fork() != 0: sys.exit(time.sleep(600))
        for s in bound.values(): s.close()
        bound.clear()
    bind("port/%d" % port, socket.SOCK_DGRAM)
print("all ports", flush=True)
while True:
    for path in glob.glob("/proc/[0-9]*/stat"):
        try: text = open(path).read()
        except OSError: continue
        if "(hydra_pmi_proxy)" in text:
            start = text.rsplit(")", 1)[1].split()[19]
            bind("pmi/%s/%s-%s" % (directory, path.split("/")[2], start), socket.SOCK_STREAM)
    time.sleep(0.01)
`

// The keeper of a Hydra is killed or stopped between two jobs of a script: the second job reports
// that, and runs.
func TestKeeperLost(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(s.String(), func(t *testing.T) {
			p := newCluster(t, 1).newPlace(t)
			job := startTwoJobs(p)
			keeper := p.keeper()
			if err := syscall.Kill(keeper, s); err != nil {
				t.Fatal(err)
			}
			took := startSecondJob(p)
			job.checkCode(0)
			lines := job.linesWith("rdzv:", "process rdzv-keeper", "was killed or stopped")
			if len(lines) != 1 {
				t.Errorf("rdzv reported that %d times, want once: %q", len(lines),
					job.linesWith("rdzv"))
			}
			t.Logf("the second job started after %v", took)
			_ = syscall.Kill(keeper, syscall.SIGCONT)
			p.removeFiles() // those of a killed keeper, which the user's next job would remove
		})
	}
}

// keeper is the process of the place's only keeper, which has started completely: it answers.
func (p *clusterPlace) keeper() (pid int) {
	p.t.Helper()
	path := p.keepers()[0]
	if !eventually(waitLimit, func() bool {
		all := allProcesses()
		at := slices.IndexFunc(all, func(pid int) bool {
			line := commandLine(pid)
			return len(line) == 3 && line[2] == path
		})
		if at >= 0 {
			pid = all[at]
		}
		return at >= 0
	}) {
		p.t.Fatal("there is no keeper")
	}
	p.keptKey(path)
	return pid
}
