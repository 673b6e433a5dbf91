package integration

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tcpStoreServer is a program that imports torch once and forks a rank for whoever connects to the socket: its environment comes as
// one line of JSON, and "ok" goes back when the ranks of its job have told each other its name through torch's own store. The
// rank keeps that until the other end is closed.
const tcpStoreServer = `
import datetime, gc, json, os, signal, socket, sys, traceback
from torch.distributed import TCPStore

def rank(env):
    rank, size, run = int(env["RANK"]), int(env["WORLD_SIZE"]), env["RDZV_RUN_ID"]
    store = TCPStore(env["MASTER_ADDR"], int(env["MASTER_PORT"]), size, rank == 0, datetime.timedelta(seconds=60))
    store.set(f"run{rank}", run)
    told = [store.get(f"run{r}").decode() for r in range(size)]
    assert told == [run] * size, told
    return store

signal.signal(signal.SIGCHLD, signal.SIG_IGN) # ranks leave nothing to wait for
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(1024)
gc.freeze()
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    if os.fork():
        connection.close()
        continue
    try:
        store = rank(json.loads(connection.makefile().readline()))
        connection.sendall(b"ok\n")
        connection.recv(1)
    except BaseException:
        connection.sendall(traceback.format_exc().encode())
    os._exit(0)
`

// A worker whose torch is in another process:
//
//	torchstore DIR SOCKET PIPE    notes itself in DIR once its job's store is in use, and ends with 0 once somebody opens PIPE
func init() {
	if len(os.Args) != 5 || os.Args[1] != "torchstore" {
		return
	}
	if err := torchStore(os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintf(os.Stderr, "store of rank %s: %v\n", os.Getenv("RANK"), err)
		os.Exit(1)
	}
	os.Exit(0)
}

func torchStore(dir, socket, pipe string) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	env := map[string]string{}
	for _, name := range []string{"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "RDZV_RUN_ID"} {
		env[name] = os.Getenv(name)
	}
	if err := errors.Join(conn.SetDeadline(time.Now().Add(2*waitLimit)), json.NewEncoder(conn).Encode(env)); err != nil {
		return err
	}
	answer := bufio.NewScanner(conn)
	var lines []string
	for answer.Scan() && answer.Text() != "ok" {
		lines = append(lines, answer.Text())
	}
	if len(lines) > 0 || answer.Err() != nil {
		return fmt.Errorf("%w\n%s", answer.Err(), strings.Join(lines, "\n"))
	}
	if err := note(dir); err != nil {
		return err
	}
	end, err := os.Open(pipe) // hundreds that look for a file again and again would be the load of this test
	if err != nil {
		return err
	}
	return end.Close()
}

// A hundred jobs are started at once on one host and run at the same time, each with torch's own store: each gets a port of its
// own, and nobody speaks with another job's ranks.
func TestHundredMasterPorts(t *testing.T) {
	const jobs = 100
	p := newPlace(t)
	socket, end := filepath.Join(p.root, "torch"), filepath.Join(p.root, "end")
	if err := syscall.Mkfifo(end, 0o600); err != nil {
		t.Fatal(err)
	}
	torch := p.start(python, "-c", tcpStoreServer, socket)
	defer func() {
		kill(torch.cmd.Process.Pid)
		<-torch.done
	}()
	torch.waitFor("listening")
	var started []*process
	for i := range jobs {
		worker := []string{self, "torchstore", p.dir(strconv.Itoa(i)), socket, end}
		started = append(started, p.start(direct(p, 2, []string{"--join-timeout", "60s"}, worker)...))
	}
	ports := map[string]int{}
	for i := range started {
		all := records(t, filepath.Join(p.root, strconv.Itoa(i)), 2)
		ports[all[0].Env["MASTER_PORT"]]++
	}
	if len(ports) != jobs {
		t.Errorf("%d jobs at the same time had %d ports", jobs, len(ports))
	}
	all, err := os.OpenFile(end, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	for i, job := range started {
		if code := job.code(); code != 0 {
			t.Errorf("job %d ended with %d", i, code)
		}
	}
}
