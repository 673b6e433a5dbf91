"""Two hosts, node1 and node2, on this machine: integration/testbed, and Slurm on them where a launcher needs it."""
import os, subprocess, tempfile, time
from job import KIT

TESTBED = f"{os.path.dirname(KIT)}/integration/testbed"


class Hosts:
    def __init__(self, tmp, slurm):
        self.dir = tempfile.mkdtemp(prefix="bench-hosts-", dir=tmp)
        self.env = dict(HOSTS_DIR=self.dir, HOSTS=f"{TESTBED}/hosts", SLURM_CONF=f"{self.dir}/slurm/slurm.conf")
        self.call("up", "2")
        if slurm:
            subprocess.run([f"{TESTBED}/slurm", "up"], env=dict(os.environ, **self.env), check=True)

    def call(self, *words):
        subprocess.run([f"{TESTBED}/hosts", *words], env=dict(os.environ, **self.env), check=True)

    def on(self, node, argv):
        """What `hosts on` runs, without the shell that looks it up: argv on host node + 1; the pid stays the caller's."""
        with open(f"{self.dir}/{node + 1}") as f:
            return ["nsenter", "-t", f.read().strip(), "-n", "-u", "-m", "-i", f"--wd={os.getcwd()}", "--"] + argv

    def slurm(self, *words):
        return subprocess.run(self.on(0, list(words)), env=dict(os.environ, **self.env), capture_output=True).stdout

    def clear_slurm(self, limit):
        """Ends what a killed srun has left to Slurm's daemons, and waits until the last job is done with: the next one would be
        queued, and the queue is looked at once a second."""
        end = time.monotonic() + limit
        self.slurm("scancel", "--user", str(os.getuid()))
        while time.monotonic() < end and self.slurm("squeue", "-h"):
            time.sleep(0.05)

    def down(self):
        self.call("down")
        subprocess.run(["rm", "-rf", self.dir])
