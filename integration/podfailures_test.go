package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// podScript runs a command in a mount namespace with a /dev that has an empty file as its
// termination log, or whatever is in that file, as the kubelet mounts one.
const podScript = `log=$1; shift; mkdir -p "$log.dev" && mount -t tmpfs none "$log.dev" &&
for name in null zero full random urandom; do
	touch "$log.dev/$name" && mount --bind "/dev/$name" "$log.dev/$name" || exit
done
ln -s /proc/self/fd "$log.dev/fd" && touch "$log.dev/termination-log" &&
mount --bind "$log" "$log.dev/termination-log" && mount --rbind "$log.dev" /dev && exec "$@"`

// pods are imitated pods of an Indexed Job, one on each host.
type pods struct {
	*clusterPlace
	env []string // of all
}

// newPods has the pods of a Job of so many.
func (c *cluster) newPods(t *testing.T, n int, env ...string) *pods {
	p := c.newPlace(t)
	return &pods{p, append(env, "KUBERNETES_SERVICE_HOST=10.96.0.1", fmt.Sprint("RDZV_NODES=", n),
		"RDZV_TOKEN="+podToken, "RDZV_STORE=node1", "RDZV_JOB="+filepath.Base(p.root))}
}

// log is the termination log of the pod on a host.
func (p *pods) log(host int) string { return filepath.Join(p.dir("logs"), fmt.Sprint(host)) }

// message is what is in it.
func (p *pods) message(host int) string {
	p.t.Helper()
	text, err := os.ReadFile(p.log(host))
	if err != nil {
		p.t.Error(err)
	}
	return string(text)
}

// start starts the pod of a host, whose index is one less, with an empty log.
func (p *pods) start(host int, argv ...string) *process {
	p.t.Helper()
	if err := os.WriteFile(p.log(host), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return p.startAgain(host, argv...)
}

// startAgain starts it with what is in its log.
func (p *pods) startAgain(host int, argv ...string) *process {
	line := []string{"unshare", "--mount"}
	if os.Geteuid() != 0 {
		line = append(line, "--map-root-user")
	}
	line = append(line, "sh", "-c", podScript, "sh", p.log(host))
	env := append(p.env[:len(p.env):len(p.env)], fmt.Sprint("JOB_COMPLETION_INDEX=", host-1))
	return p.startWith(env, p.cluster.on(host, append(line, argv...)...)...)
}

func (p *pods) startAll(n int, argv ...string) (all []*process) {
	p.t.Helper()
	for host := 1; host <= n; host++ {
		all = append(all, p.start(host, argv...))
	}
	return all
}

// checkMessages checks what all pods say.
func (p *pods) checkMessages(n int, texts ...string) {
	p.t.Helper()
	for host := 1; host <= n; host++ {
		message := p.message(host)
		if len(message) > 4096 || strings.Count(message, "\n") > 1 {
			p.t.Errorf("node%d: %d bytes: %.300q", host, len(message), message)
		}
		for _, text := range texts {
			if !strings.Contains(message, text) {
				p.t.Errorf("the termination log on node%d is %.300q, want %q", host, message, text)
			}
		}
	}
}

// Every pod of a Job says in its termination log which rank of which pod failed, and why.
func TestTerminationLog(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, "--nomulticast")
	exec := func(program ...string) []string { return rdzvExec(joinSoon, program) }
	fails := `import os
print("noise"); assert os.environ["RANK"] != "2", "loss is nan " + "世" * int(os.environ.get("LONG", "0"))
import time; time.sleep(60)`
	runConcurrently(t, []scenario{
		{"a rank fails", func(t *testing.T) {
			p := c.newPods(t, 3)
			checkCodes(1, p.startAll(3, exec("python3", "-c", fails)...)...)
			p.checkMessages(3, "rank 2 failed first: exit 1 after ", " on node3 (local rank 0, pid ",
				"): AssertionError: loss is nan")
		}},
		{"a long message", func(t *testing.T) {
			p := c.newPods(t, 3, "LONG=3000")
			checkCodes(1, p.startAll(3, exec("python3", "-c", fails)...)...)
			p.checkMessages(3, "rank 2 failed first: ", "loss is nan 世世")
		}},
		{"success", func(t *testing.T) {
			p := c.newPods(t, 3)
			checkCodes(0, p.startAll(3, exec("true")...)...)
			for host := 1; host <= 3; host++ {
				if message := p.message(host); message != "" {
					t.Errorf("node%d: %q", host, message)
				}
			}
		}},
		{"a pod is missing", func(t *testing.T) {
			p := c.newPods(t, 3)
			checkCodes(124, p.startAll(2, rdzvExec([]string{"--join-timeout", "4s"}, []string{"true"})...)...)
			p.checkMessages(2, "timed out after 4s (--join-timeout): 2 of 3 tasks joined; rank 2 ")
		}},
		{"no token", func(t *testing.T) {
			p := c.newPods(t, 3)
			p.env = append(p.env, "RDZV_TOKEN=", "HOME="+p.dir("empty"))
			p.start(2, exec("true")...).checkCode(125)
			if message := p.message(2); !strings.HasPrefix(message, "cannot find the token: ") ||
				!strings.Contains(message, "\nhint: in the pod template: ") {
				t.Errorf("%q", message)
			}
		}},
		{"a signal", func(t *testing.T) {
			p := c.newPods(t, 3)
			all := p.startAll(3, exec("sh", "-c", "echo up; exec sleep 60")...)
			for _, pod := range all {
				pod.waitFor("up")
			}
			all[1].signal(syscall.SIGTERM)
			checkCodes(143, all...)
			p.checkMessages(3, "node2 received SIGTERM: the job is stopped")
		}},
		{"a pod is lost", func(t *testing.T) {
			p := c.newPods(t, 3)
			all := p.startAll(3, exec("sh", "-c", "echo up; exec sleep 60")...)
			for _, pod := range all {
				pod.waitFor("up")
			}
			all[2].signal(syscall.SIGKILL)
			checkCodes(123, all[:2]...)
			p.checkMessages(2, "lost the agent of rank 2 (pid ", " on node3)")
		}},
		{"not empty, or off", func(t *testing.T) {
			p := c.newPods(t, 2)
			line := exec("sh", "-c", "exit 3")
			for host, before := range map[int]string{1: "before", 2: "earlier"} {
				if err := os.WriteFile(p.log(host), []byte(before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			checkCodes(3, p.startAgain(1, line...), p.startAgain(2, line...))
			if first, second := p.message(1), p.message(2); first != "before" || second != "earlier" {
				t.Errorf("%q, %q", first, second)
			}
			off := c.newPods(t, 2, "RDZV_TERMINATION_LOG=off")
			checkCodes(3, off.startAll(2, line...)...)
			if off.message(1) != "" || off.message(2) != "" {
				t.Errorf("off: %q, %q", off.message(1), off.message(2))
			}
		}},
		{"out of memory", func(t *testing.T) {
			p, group := c.newPods(t, 2), memoryGroup(t, 64<<20)
			eats := `[ $RANK = 0 ] && exec sleep 60; exec python3 -c 'x = bytearray(1 << 30)'`
			line := exec("sh", "-c", eats)
			inGroup := append([]string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group}, line...)
			checkCodes(137, p.start(1, line...), p.start(2, inGroup...))
			p.checkMessages(2, "rank 1 failed first: killed by SIGKILL after ", " on node2 ",
				"the kernel's out-of-memory killer killed a process of its cgroup")
		}},
	})
}

// A pod that is deleted gets SIGTERM. The others wait for its index, and all go on when it has been
// started again.
func TestDeletedPod(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, "--nomulticast")
	const program = `echo "up $RDZV_ATTEMPT $RANK"; [ $RDZV_ATTEMPT = 1 ] || exec sleep 60`
	flags := append([]string{"--max-restarts", "1"}, joinSoon...)
	up := func(all []*process, attempt int) {
		for rank, pod := range all {
			pod.waitFor(fmt.Sprintf("up %d %d", attempt, rank))
		}
	}
	line := rdzvExec(flags, []string{"sh", "-c", program})
	const trainJob = "PET_NNODES=3 PET_MASTER_ADDR=node1 RDZV_TOKEN=" + podToken
	runConcurrently(t, []scenario{
		{"Indexed Job", func(t *testing.T) {
			p := c.newPods(t, 3)
			all := p.startAll(3, line...)
			up(all, 0)
			all[1].signal(syscall.SIGTERM)
			all[1].checkCode(143)
			if message := p.message(2); !strings.Contains(message, "received SIGTERM") {
				t.Errorf("the termination log of the deleted pod is %q", message)
			}
			all[0].waitFor("node2 leaves the job: received SIGTERM")
			all[1] = p.start(2, line...)
			up(all, 1)
			checkCodes(0, all...)
			all[0].waitFor("node2 runs rank 1 again (restart 1 of 1)")
		}},
		{"TrainJob", func(t *testing.T) {
			p := c.newPlace(t)
			start := func(rank int) *process {
				env := append(strings.Fields(trainJob), fmt.Sprint("PET_NODE_RANK=", rank),
					"RDZV_JOB="+filepath.Base(p.root))
				return p.startWith(env, c.on(rank+1, line...)...)
			}
			all := []*process{start(0), start(1), start(2)}
			up(all, 0)
			all[2].signal(syscall.SIGTERM)
			all[2].checkCode(143)
			all[2] = start(2)
			up(all, 1)
			checkCodes(0, all...)
		}},
		{"no restart is left", func(t *testing.T) {
			p := c.newPods(t, 3)
			all := p.startAll(3, rdzvExec(joinSoon, []string{"sh", "-c", program})...)
			up(all, 0)
			all[1].signal(syscall.SIGTERM)
			checkCodes(143, all...)
		}},
		{"index 0", func(t *testing.T) {
			p := c.newPods(t, 3)
			all := p.startAll(3, line...)
			up(all, 0)
			all[0].signal(syscall.SIGTERM)
			checkCodes(143, all...)
			p.checkMessages(3, "the job is stopped, because this agent hosts the store")
		}},
	})
}

// rdzv check and rdzv exec with the environment of a pod do not take each other for a peer, also if
// one pod is still checking while another one has begun its job.
func TestCheckBeforeExec(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, "--nomulticast")
	init := append([]string{*rdzvBin, "check", "--join-timeout", "20s", "--"}, "true")
	pod := func(p *pods) []string {
		line := strings.Join([]string{quoted(init), "&&", "exec",
			quoted(rdzvExec(joinSoon, []string{"sh", "-c", "echo rank $RANK of $WORLD_SIZE"}))}, " ")
		return []string{"sh", "-c", line}
	}
	runConcurrently(t, []scenario{
		{"both", func(t *testing.T) {
			p := c.newPods(t, 2)
			all := p.startAll(2, pod(p)...)
			checkCodes(0, all...)
			all[0].waitFor("rank 0 of 2")
			all[1].waitFor("rank 1 of 2")
		}},
		{"one begins its job early", func(t *testing.T) {
			p := c.newPods(t, 2)
			early := p.start(2, rdzvExec([]string{"--join-timeout", "40s"},
				[]string{"sh", "-c", "echo rank $RANK of $WORLD_SIZE"})...)
			checking := p.start(1, append([]string{*rdzvBin, "check", "--join-timeout", "8s", "--"},
				"sh", "-c", "echo rank $RANK of $WORLD_SIZE")...)
			checking.checkCode(1)
			p.checkMessage(1, "timed out after 8s (--join-timeout): 1 of 2 tasks joined")
			late := p.start(1, rdzvExec(joinSoon, []string{"sh", "-c", "echo rank $RANK of $WORLD_SIZE"})...)
			checkCodes(0, early, late)
			early.waitFor("rank 1 of 2")
		}},
		{"a check fails", func(t *testing.T) {
			p := c.newPods(t, 2)
			line := []string{*rdzvBin, "check", "--join-timeout", "20s", "--", "missing-program"}
			all := p.startAll(2, line...)
			checkCodes(1, all...)
			p.checkMessages(2, "missing-program")
		}},
	})
}

// checkMessage checks what one pod says.
func (p *pods) checkMessage(host int, text string) {
	p.t.Helper()
	if message := p.message(host); !strings.Contains(message, text) {
		p.t.Errorf("the termination log on node%d is %.300q, want %q", host, message, text)
	}
}
