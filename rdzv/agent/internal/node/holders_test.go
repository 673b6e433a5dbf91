package node

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// process adds a process with these files open.
func (m machine) process(pid int, name string, open ...string) {
	dir := fmt.Sprintf("proc/%d", pid)
	m.set(dir+"/stat", "%d (%s) S 1%s", pid, name, strings.Repeat(" 0", 40))
	for i, target := range open {
		file := fmt.Sprintf("%s/fd/%d", dir, i)
		m.files[file] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o700}
	}
}

// cuda are the files that a program has opened that uses these GPUs of NVIDIA.
func cuda(gpus ...int) []string {
	files := []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm", "/dev/null"}
	for _, n := range gpus {
		files = append(files, fmt.Sprintf("/dev/nvidia%d", n))
	}
	return files
}

func TestGPUProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		add  func(m machine)
		want string
	}{
		"none": {func(machine) {}, "none"},
		"other users": {func(m machine) {
			delete(m.files, "proc/1/fd/0")
			delete(m.files, "proc/1/fd/1")
		}, "none of this user"},
		"one": {func(m machine) { m.process(4711, "python3", cuda(3)...) },
			"GPU 3 is held by pid 4711 (python3)"},
		"several": {func(m machine) {
			m.process(12, "a) b", cuda(0)...)
			m.process(13, "python3", cuda(4, 5)...)
			m.process(14, "python3", cuda(0)...)
		}, "GPU 0 is held by pid 12 (a) b), pid 14 (python3); GPUs 4, 5 are held by pid 13 (python3)"},
		"many": {func(m machine) {
			for i := range 8 {
				m.process(20+i, "pt_main_thread", cuda(i/4)...)
			}
		}, "GPU 0 is held by pid 20 (pt_main_thread), pid 21 (pt_main_thread), " +
			"pid 22 (pt_main_thread), pid 23 (pt_main_thread); GPU 1 is held by " +
			"pid 24 (pt_main_thread), pid 25 (pt_main_thread); and 2 more"},
		"on purpose": {func(m machine) {
			m.process(30, "nvidia-persiste", cuda(0, 1)...)
			m.process(31, "nv-hostengine", "/dev/nvidiactl", "/dev/nvidia0")
			m.process(32, "Xorg", "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-modeset")
		}, "none"},
		"number of the file": {func(m machine) {
			const file = "proc/driver/nvidia/gpus/0000:19:00.0/information"
			m.set(file, "Model: NVIDIA H100 80GB HBM3\nDevice Minor: 9")
			m.process(40, "python3", cuda(9)...)
		}, "GPU 0 is held by pid 40 (python3)"},
		"ended meanwhile": {func(m machine) {
			m.process(50, "python3", cuda(0)...)
			delete(m.files, "proc/50/stat")
		}, "none"},
	} {
		m := gpuNode()
		c.add(m)
		if got := m.gpuProcesses(t.Context()); got.Value != c.want ||
			(got.Warning != "") != strings.HasPrefix(c.want, "GPU") {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

func TestGPUProcessesOfAMD(t *testing.T) {
	m := machine{files: fstest.MapFS{}, shm: Space{8 << 30, 8 << 30}}
	for i := range 2 {
		device := fmt.Sprintf("sys/class/drm/card%d/device", i)
		m.set(device+"/vendor", "0x1002")
		m.set(fmt.Sprintf("%s/drm/card%d/uevent", device, i), "")
		m.set(fmt.Sprintf("%s/drm/renderD%d/uevent", device, 128+i), "")
	}
	m.process(1, "systemd", "/dev/null")
	m.process(70, "gnome-shell", "/dev/dri/card0", "/dev/dri/renderD128")
	m.process(71, "python3", "/dev/kfd", "/dev/dri/renderD129")
	const want = "GPU 1 is held by pid 71 (python3)"
	if got := m.gpuProcesses(t.Context()); got.Value != want {
		t.Errorf("%+v, want %q", got, want)
	}
}

// What takes too long is left out.
func TestGPUProcessesTooSlow(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	m := gpuNode()
	if got := m.gpuProcesses(ended); got != (Fact{}) {
		t.Errorf("%+v, want none", got)
	}
}

// gpuProcesses is that fact.
func (m machine) gpuProcesses(ctx context.Context) Fact {
	for _, f := range m.facts(ctx) {
		if f.Name == "GPU processes" {
			return f
		}
	}
	return Fact{}
}
