"""Two hosts, node1 and node2, on this machine (integration/testbed), with Slurm on them if a
launcher needs it."""
import os
import subprocess
import tempfile
import time
from job import BENCH

TESTBED = f"{os.path.dirname(BENCH)}/integration/testbed"


class Hosts:
    def __init__(self, tmp, slurm):
        self.dir = tempfile.mkdtemp(prefix="bench-hosts-", dir=tmp)
        self.env = dict(HOSTS_DIR=self.dir, HOSTS=f"{TESTBED}/hosts",
                        SLURM_CONF=f"{self.dir}/slurm/slurm.conf")
        self.call("hosts", "up", "2")
        if slurm:
            self.call("slurm", "up")

    def call(self, script, *words):
        """Runs a script of the testbed."""
        subprocess.run([f"{TESTBED}/{script}", *words], env=dict(os.environ, **self.env),
                       check=True)

    def on(self, node, argv):
        """The command line that runs argv on host node + 1. It does what `hosts on` does without
        starting a shell, so that the process that starts it becomes argv."""
        with open(f"{self.dir}/{node + 1}") as f:
            holder = f.read().strip()
        return ["nsenter", "-t", holder, "-n", "-u", "-m", "-i", f"--wd={os.getcwd()}", "--"] + argv

    def slurm(self, *words):
        return subprocess.run(self.on(0, list(words)), env=dict(os.environ, **self.env),
                              capture_output=True).stdout

    def clear_slurm(self, limit):
        """Cancels what is left of earlier jobs, and waits until the queue is empty. Otherwise Slurm
        would queue the next job, and look at its queue only once a second."""
        end = time.monotonic() + limit
        self.slurm("scancel", "--user", str(os.getuid()))
        while time.monotonic() < end and self.slurm("squeue", "-h"):
            time.sleep(0.05)

    def down(self):
        self.call("hosts", "down")
        subprocess.run(["rm", "-rf", self.dir])
