"""How long a job takes that logs in to many hosts with ssh (integration/testbed/sshd)."""
import os
import shlex
import subprocess
import tempfile
import time
from job import BENCH
from procs import now

TESTBED = f"{os.path.dirname(BENCH)}/integration/testbed"
PROGRAMS = "/srv/bin"            # of the hosts; not in PATH


class SSHHosts:
    """n hosts. The user "you" logs in from node1 to all of them."""

    def __init__(self, tmp, n, rdzv):
        self.n, self.dir = n, tempfile.mkdtemp(prefix="bench-hosts-", dir=tmp)
        self.env = dict(os.environ, HOSTS_DIR=self.dir)
        self.call("hosts", "up", str(n))
        self.call("sshd", "up", "--plain")
        subprocess.run(["install", "-m", "755", rdzv, f"{self.dir}/srv/bin/rdzv"], check=True)
        with open(f"{self.dir}/srv/hosts", "w") as f:
            f.writelines(f"node{k}\n" for k in range(1, n + 1))

    def call(self, script, *words):
        subprocess.run([f"{TESTBED}/{script}", *words], env=self.env, check=True)

    def left(self):
        """What a job has left on the hosts, which have a moment to end what it ran there."""
        for _ in range(20):
            text = subprocess.run([f"{TESTBED}/sshd", "left"], env=self.env, capture_output=True,
                                  text=True).stdout.strip()
            if not text:
                break
            time.sleep(0.1)
        return text

    def start(self, argv, log):
        return subprocess.Popen([f"{TESTBED}/sshd", "as", "1", "you", *argv], env=self.env,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                                text=True)

    def down(self):
        self.call("hosts", "down")
        subprocess.run(["rm", "-rf", self.dir])


def m_ssh(a, spec, c):
    hosts = a.ssh_hosts[c["n"]]
    if spec.get("cold"):
        hosts.call("sshd", "reset", "--cold")
    # Open MPI hangs if so many tasks end as soon as they have started.
    lives = 2 if hosts.n >= 32 else 0
    names = ",".join(f"node{k}:1" for k in range(1, hosts.n + 1))
    argv = shlex.split(spec["ssh"].format(n=hosts.n, names=names, rdzv=f"{PROGRAMS}/rdzv"))
    argv += ["sh", "-c", f"echo started; exec sleep {lives}"]
    with tempfile.TemporaryFile("w+", dir=a.tmp) as log:
        start = now()
        process = hosts.start(["timeout", "-k", "5", str(a.limit), *argv], log)
        times = [now() - start for line in process.stdout if line.strip() == "started"]
        rc = process.wait()
        wall = now() - start
        log.seek(0)
        tail = log.read()[-400:]
    left = hosts.left()
    bad = "; ".join(filter(None, [
        "" if len(times) == hosts.n else f"{len(times)} of {hosts.n} started, exit code {rc}",
        f"exit code {rc}" if rc else "", f"left: {left}" if left else ""]))
    if left:
        hosts.call("sshd", "reset")
    if len(times) != hosts.n:
        return dict(bad=bad, tail=tail)
    return dict(first_s=round(times[0], 4), last_s=round(times[-1], 4),
                end_s=round(wall - lives, 4), rc=rc, bad=bad)
