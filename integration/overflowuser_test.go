package integration

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"rdzv/internal/proctest"
)

// The user of a job has the number of nobody in a user namespace, which the kernel shows there for
// all users without a number as well. Another local user cannot end the job, which runs with one
// agent per task.
func TestOverflowUser(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	uid, attacker := os.Geteuid(), strconv.Itoa(61636)
	attack := proctest.AsRoot(t, "setpriv", "--reuid", attacker, "--regid", attacker,
		"--clear-groups", python, "-c", endJobsOf)
	ended := filepath.Join(p.dir("job"), "ended")
	program := []string{"sh", "-c", `echo "started rank $RANK"; until [ -e "$0" ]; do sleep 0.05; done`, ended}
	line := append([]string{"unshare", "--user", "--map-user=65534", "--map-group=65534"},
		hydra(p, 2, nil, program)...)
	if uid == 0 {
		uid = 61635
		line = asUser(t, p, strconv.Itoa(uid), line)
	}
	job := p.start(line...)
	job.waitFor("started rank 0")
	job.waitFor("started rank 1")
	p.start(append(attack, strconv.Itoa(uid))...).checkCode(0)
	if err := os.WriteFile(ended, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	job.checkCode(0)
}

// endJobsOf orders all agents of a user to end their jobs, and waits for their answers.
const endJobsOf = `
import json, re, socket, struct, sys
for name in re.findall(r"@(rdzv/agent/\S+)", open("/proc/net/unix").read()):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(6)
        try:
            s.connect("\0" + name)
            credentials = s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            if struct.unpack("3i", credentials)[1] == int(sys.argv[1]):
                s.sendall(json.dumps({"kind": "stop", "arg": "another user"}).encode() + b"\n")
                print("answer:", s.recv(4096))
        except OSError as e:
            print(name, e)
`
