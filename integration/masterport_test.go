package integration

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// listener is a Python program that listens on a port until a file exists.
const listener = `import os, socket, sys, time
l = socket.create_server(('', int(sys.argv[1])))
print('listening')
while not os.path.exists(sys.argv[2]): time.sleep(0.1)`

// If another program has MASTER_PORT, the job fails with a message before any worker starts, also
// if rank 0 is on another host. When the port is free, the job succeeds, and the ports above it are
// free too, although the store may use them: of this range it takes the last port, 9 above.
func TestMasterPortTaken(t *testing.T) {
	t.Parallel()
	p := newCluster(t, 2).newPlace(t)
	const port = "29950"
	free := filepath.Join(p.root, "free")
	other := p.on(1, python, "-c", listener, port, free)
	other.waitFor("listening")
	onTwoHosts := openMPIJob("--host node1:1,node2:1 -np 2",
		"--master-port", port, "--port-range", "29952-29959")
	onOneHost := func(p *clusterPlace) *process { return p.on(1, p.exec("--master-port", port)...) }
	for _, start := range []func(p *clusterPlace) *process{onOneHost, onTwoHosts} {
		job := start(p)
		if code := job.code(); code == 0 {
			t.Errorf("%s ended with exit code 0, want a failure", job.program())
		}
		if len(job.linesWith("rdzv:", port, "address already in use")) == 0 {
			t.Errorf("%s did not report that the port is in use", job.program())
		}
	}
	checkNumberOfWorkers(t, p.dir("job"), 0)
	if err := os.WriteFile(free, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other.checkCode(0)
	onTwoHosts(p).checkCode(0)
	all := records(t, p.dir("job"), 2)
	all[1].checkEnv(t, map[string]string{"MASTER_PORT": port})
	all[0].checkEnv(t, map[string]string{"NEXT_PORTS": "free"})
}

// Many jobs run on one host at the same time, each with torch's own store: each has a port of its
// own, and no rank communicates with another job.
func TestManyMasterPorts(t *testing.T) {
	t.Parallel()
	jobs := 30
	if *wholeMatrix {
		jobs = 100
	}
	p := newPlace(t)
	end := filepath.Join(p.root, "end")
	if err := syscall.Mkfifo(end, 0o600); err != nil {
		t.Fatal(err)
	}
	program := startRankServer(t, "store")
	var started []*process
	for i := range jobs {
		env := []string{"RANKS_DIR=" + p.dir(strconv.Itoa(i)), "RANKS_END=" + end}
		started = append(started, p.startWith(env, direct(p, 2, nil, program)...))
	}
	ports := map[string]bool{}
	for i := range started {
		all := records(t, p.dir(strconv.Itoa(i)), 2)
		ports[all[0].Env["MASTER_PORT"]] = true
	}
	if len(ports) != jobs {
		t.Errorf("%d jobs at the same time have %d ports", jobs, len(ports))
	}
	opened, err := os.OpenFile(end, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	checkCodes(0, started...)
}
