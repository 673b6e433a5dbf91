package integration

import (
	"path/filepath"
	"strings"
	"testing"
)

// imitatedNCCL is a Python program each rank of which answers as NCCL's RAS service does, and makes
// the FIFO of a flight recorder. Rank 2 of 4 is at operation 5 and the others are at 6; with the
// argument "on" all go on every second.
const imitatedNCCL = `import json, os, socket, sys, threading, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
began = time.time()
def report():
    now = int(time.time() - began) if sys.argv[1] == "on" else 0
    ranks = [{"rank": r, "host": "10.0.0.1", "pid": 100 + r,
        "collective_counts": {"Broadcast": 1, "AllReduce": now + (5 if r == 2 else 6)}} for r in range(size)]
    return json.dumps({"nccl_version": "2.30.7", "communicators_count": 1, "communicators": [
        {"hash": "0x1", "secondary_hash": "0x2:0x3", "size": size, "ranks": ranks, "missing_ranks": []}]})
host, port = os.environ["NCCL_RAS_ADDR"].split(":")
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind((host, int(port)))
s.listen(100)
def serve():
    while True:
        c = s.accept()[0]
        for line in c.makefile():
            if "STATUS" in line:
                c.sendall(report().encode())
                break
            c.sendall(b"SERVER PROTOCOL 2\n" if "PROTOCOL" in line else b"OK\n")
        c.close()
threading.Thread(target=serve, daemon=True).start()
pipe = os.environ["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"] + str(rank) + ".pipe"
os.mkfifo(pipe)
print("ready", flush=True)
while True:
    time.sleep(0.2)
    if sys.argv[1] == "on" and time.time() - began > 16: break`

// What NCCL tells of a hang: which rank is behind, in status, stacks and the report of a stall; and
// a silent job that launches collective operations has not stalled.
func TestHangInNCCL(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	const behind = "NCCL: rank 2 is at all_reduce 5, the other 3 at 6"
	t.Run("behind", func(t *testing.T) {
		logs := t.TempDir()
		program := []string{python, "-c", imitatedNCCL, "behind"}
		j := c.startJob(t, "openmpi", 2, []string{"--log-dir", logs, "--stall-timeout", "12s"}, program)
		j.commands[0].waitFor("ready")
		j.awaitStacks(2, behind)
		show := j.start(c.on(1, *rdzvBin, "status")...)
		show.checkCode(0)
		lines := strings.Join(show.linesWith(""), "\n")
		for _, want := range []string{"COLL", "  6 ", "  7 ", behind} {
			if !strings.Contains(lines, want) {
				t.Errorf("rdzv status prints\n%s\nwant %q in it", lines, want)
			}
		}
		j.checkCommands(119)
		stalled := strings.Join(j.linesWith("rdzv: stalled "), "\n")
		if !strings.Contains(stalled, "rank 2 on node2 is behind; "+behind) {
			t.Errorf("the stall is %q", stalled)
		}
		t.Log(lines + "\n" + stalled)
		if left, _ := filepath.Glob(filepath.Join(logs, "latest", "attempt-0", "*.pipe")); len(left) > 0 {
			t.Errorf("%q is left", left)
		}
	})
	t.Run("silent", func(t *testing.T) {
		program := []string{python, "-c", imitatedNCCL, "on"}
		flags := []string{"--log-dir", t.TempDir(), "--stall-timeout", "7s"}
		j := c.startJob(t, "openmpi", 2, flags, program)
		j.checkCommands(0)
		if lines := j.linesWith("rdzv: stalled "); len(lines) > 0 {
			t.Errorf("a job that makes progress has stalled: %q", lines)
		}
	})
}
