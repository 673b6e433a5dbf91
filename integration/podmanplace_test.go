package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// podman is a place with containers, whose files podman keeps in the place.
type podman struct {
	*place
	rootfs string
	group  string   // the cgroup of the containers
	as     []string // runs podman as another user
}

func newPodman(t *testing.T, slurm bool) *podman {
	t.Helper()
	p := &podman{place: newPlace(t)}
	if slurm {
		p.place = newSlurm(t)
	}
	p.env = append(p.env, "RDZV_TOKEN="+oneToken)
	if os.Geteuid() != 0 { // otherwise podman keeps files in TMPDIR
		p.env = append(p.env, "XDG_RUNTIME_DIR="+p.dir("run"))
	}
	p.dir("podman")
	p.rootfs, p.group = p.rootFS(), "/rdzv-integration-"+p.mark
	t.Cleanup(p.removeContainers)
	return p
}

// podman is a command line of podman. runc works with cgroups of version 1 and of both versions,
// crun does not.
func (p *podman) podman(args ...string) []string {
	dir := p.dir("podman")
	return append([]string{"podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs",
		"--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"),
		"--tmpdir", filepath.Join(dir, "tmp"), "--storage-driver", "vfs",
		"--events-backend", "none"}, args...)
}

// run is a command line that runs a program in a container. podman sets limits that only a root with
// CAP_SYS_RESOURCE may, unless they are given.
func (p *podman) run(flags, program []string) []string {
	line := p.podman(slices.Concat(podmanRun, []string{"-e", markName,
		"--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"})...)
	if !p.rootless() {
		line = append(line, "--cgroup-parent", p.group)
	}
	return slices.Concat(line, flags, []string{"--rootfs", p.rootfs}, program)
}

// client is a podman with this command.
func (p *podman) client(command string) int {
	p.t.Helper()
	for _, pid := range p.marked() {
		if nameOf(pid) == "podman" && slices.Contains(commandLine(pid), command) {
			return pid
		}
	}
	p.t.Fatalf("podman %s does not run", command)
	return 0
}

// inContainers counts the processes of this name in containers, which have their own pids.
func (p *podman) inContainers(name string) (n int) {
	own, _ := os.Readlink("/proc/self/ns/pid")
	for _, pid := range p.marked() {
		pids, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
		if err == nil && pids != own && nameOf(pid) == name {
			n++
		}
	}
	return n
}

func (p *podman) stop(name string) {
	p.t.Helper()
	p.start(p.podman("kill", name)...).checkCode(0)
}

// output runs a command of podman.
func (p *podman) output(args ...string) string {
	p.t.Helper()
	out, err := p.command(args...).Output()
	if err != nil {
		p.t.Errorf("podman %s: %v", args[0], err)
	}
	return string(out)
}

// command is a command of podman.
func (p *podman) command(args ...string) *exec.Cmd {
	line := slices.Concat(p.as, p.podman(args...))
	command := exec.Command(line[0], line[1:]...)
	command.Env = p.env
	return command
}

// checkNoContainers waits until no container is left.
func (p *podman) checkNoContainers() {
	p.t.Helper()
	list := func() string { return p.output("ps", "--all", "--quiet") }
	if !eventually(waitLimit, func() bool { return list() == "" }) {
		p.t.Errorf("containers are left: %q", list())
	}
}

// removeContainers removes the containers of a test that has failed, the process that keeps the
// namespaces of a user who is not root, and the cgroups.
func (p *podman) removeContainers() {
	// podman 5 fails the first time if a container's conmon has been killed.
	remove := func() bool { return p.command("rm", "--all", "--force", "--time", "0").Run() == nil }
	if !eventually(waitLimit, remove) {
		p.t.Error("podman cannot remove its containers")
	}
	if p.rootless() {
		p.output("system", "migrate")
		p.must(os.RemoveAll(filepath.Join(p.root, "home/.config/cni")))
		return
	}
	groups, _ := filepath.Glob("/sys/fs/cgroup/*" + p.group)
	for _, group := range append(groups, "/sys/fs/cgroup"+p.group) {
		eventually(waitLimit, func() bool {
			_ = exec.Command("find", group, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Run()
			_, err := os.Stat(group)
			return os.IsNotExist(err)
		})
	}
}

func (p *podman) rootless() bool { return os.Geteuid() != 0 || p.as != nil }
