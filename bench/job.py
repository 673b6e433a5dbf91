"""One run of one launcher."""
import contextlib
import glob
import os
import secrets
import shlex
import signal
import subprocess
import tempfile
import time
from procs import Watch, alive, free_port, marked, now, signal_all

BENCH = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
TOKEN = secrets.token_hex(32)    # of all jobs of this process
NODE1 = "10.77.0.11"             # the address of the first host of the testbed


class NotStarted(Exception):
    """Not all children have started. tail is the end of the job's output."""

    def __init__(self, job, started):
        super().__init__(f"{started} of {job.total} started, exit codes {job.exit_codes()}")
        self.tail = job.text()[-400:]


class Job:
    """The processes of one run: child is the command line of each rank; in it, {out} stands for
    the directory in which the children leave their files. BENCH_NODE in a child's environment is
    the number of its node if each node has a launch command of its own. env are more variables of
    the launch commands."""
    count = 0

    def __init__(self, a, spec, c, child, port=None, env=()):
        Job.count += 1
        self.id = f"b{os.getpid()}x{Job.count}"
        self.n, self.nodes, self.total = c["n"], c["nodes"], c["n"] * c["nodes"]
        self.hosts = a.hosts if self.nodes > 1 or spec.get("slurm") else None
        self.dir = tempfile.mkdtemp(prefix=f"bench-{self.id}-", dir=a.tmp)
        self.log = open(f"{self.dir}/log", "wb")
        self.child_program = a.child
        if spec.get("slurm"):
            self.hosts.clear_slurm(a.limit)
        commands = self.commands(a, spec, child, port or free_port())
        self.start_ns, self.start = time.time_ns(), now()
        env = dict(os.environ, BENCH_JOB=self.id, **dict(env), **(self.hosts.env if self.hosts else {}))
        if spec.get("token"):
            env["RDZV_TOKEN"] = TOKEN
        numbered = self.nodes == 1 or "node" in spec
        self.procs = [self.launch(node, argv, dict(env, BENCH_NODE=str(node) if numbered else ""))
                      for node, argv in enumerate(commands)]

    def commands(self, a, spec, child, port):
        """The launch commands as lists of words: one for all nodes, or one per node."""
        fields = dict(
            n=self.n, nodes=self.nodes, total=self.total, port=port, job=self.id,
            addr=NODE1 if self.nodes > 1 else "127.0.0.1",
            python=PYTHON, bench=BENCH, torchrun=a.torchrun, rdzv=a.rdzv)
        child = shlex.join(word.replace("{out}", self.dir) for word in child)
        fields["run"] = spec.get("run", "{child}").format(child=child, **fields)
        if self.nodes == 1:
            templates = [spec["one"]]
        elif "node" in spec:
            templates = [spec["node"]] * self.nodes
        else:
            templates = [spec["head"]]
        return [shlex.split(template.format(node=node, **fields))
                for node, template in enumerate(templates)]

    def launch(self, node, argv, env):
        """Starts a launch command on a node."""
        if self.hosts:
            argv = self.hosts.on(node, argv)
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                env=env, start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Kills, by pid, whatever is left of the job."""
        for _ in range(50):
            left = marked(self.id)
            if not left:
                break
            signal_all(left, signal.SIGKILL)
            time.sleep(0.02)
        for p in self.procs:
            p.wait()
        self.log.close()
        subprocess.run(["rm", "-rf", self.dir])

    def files(self, kind):
        """The words of each file of this kind that a child has written."""
        words = []
        for path in glob.glob(f"{self.dir}/{kind}.*"):
            with open(path) as f:
                words.append(f.read().split())
        return words

    def starts(self):
        """What the children have noted at their start, by rank."""
        keys = "t pid rank world lrank lworld addr port node host".split()
        rows = [dict(zip(keys, words)) for words in self.files("start")]
        for r in rows:
            r.update(t=int(r["t"]), pid=int(r["pid"]))
        return sorted(rows, key=lambda r: int(r["rank"]) if r["rank"].isdigit() else 1 << 30)

    def wait_files(self, kind, limit, times=1):
        """Waits until all children have written so many files of this kind; False if they have not
        within the limit, or if all launch commands have returned before."""
        end = now() + limit
        while now() < end:
            returned = None not in self.exit_codes()
            if len(self.files(kind)) >= times * self.total:
                return True
            if returned:
                return False
            time.sleep(0.02)
        return False

    def wait_started(self, limit):
        if not self.wait_files("start", limit):
            raise NotStarted(self, len(self.starts()))

    def check(self, rows):
        """What is wrong with the environment that the children have noted; '' if nothing."""
        bad = []
        if sorted(r["rank"] for r in rows) != sorted(map(str, range(self.total))):
            bad.append("ranks " + ",".join(r["rank"] for r in rows)[:60])
        if {r["world"] for r in rows} != {str(self.total)}:
            bad.append(f"world {sorted({r['world'] for r in rows})}")
        local = {}
        for r in rows:
            local.setdefault(r["node"] if r["node"] != "-" else r["host"], []).append(r["lrank"])
        want = sorted(map(str, range(self.n)))
        if any(sorted(v) != want for v in local.values()) or len(local) != self.nodes:
            bad.append(f"local ranks {local}"[:80])
        masters = {(r["addr"], r["port"]) for r in rows}
        if len(masters) != 1 or "-" in next(iter(masters)):
            bad.append(f"master {sorted(masters)}"[:80])
        return "; ".join(bad)

    def node_of(self, row):
        if row["node"].isdigit():
            return int(row["node"])
        return int(row["host"][-1]) - 1 if self.nodes > 1 else 0

    def exit_codes(self):
        """Of the launch commands; None for one that still runs."""
        return [p.poll() for p in self.procs]

    def returned(self, limit):
        """Waits for all launch commands, at most the limit; returns their exit codes."""
        end = now() + limit
        for p in self.procs:
            try:
                p.wait(max(0.001, end - now()))
            except subprocess.TimeoutExpired:
                pass
        return self.exit_codes()

    def text(self):
        """The output of all processes, without what differs from run to run."""
        with open(f"{self.dir}/log", errors="replace") as f:
            text = f.read()
        for value, shown in ((self.dir, "$OUT"), (BENCH, "$BENCH"), (self.child_program, "$CHILD"),
                             (self.id, "JOB")):
            text = text.replace(value, shown)
        return text

    def launchers(self):
        """The names of the launch commands in a Watch."""
        return [f"L{i}" for i in range(len(self.procs))]

    @contextlib.contextmanager
    def watch(self, rows, more=()):
        """Watches the ends of the launch commands (launchers()) and of the children (rank(row))."""
        pids = {rank(r): r["pid"] for r in rows} | dict(more)
        pids |= zip(self.launchers(), (p.pid for p in self.procs))
        w = Watch(pids)
        try:
            yield w
        finally:
            w.close()


def rank(row):
    """The name of a child in a Watch."""
    return f"r{row['rank']}"


def live(rows):
    return [r for r in rows if alive(r["pid"])]


def can_run(spec, nodes, measure):
    own = dict(rank="alone", output="copy", relay="relay", ssh="ssh")
    if measure in own:
        return own[measure] in spec
    return "one" in spec if nodes == 1 else "node" in spec or "head" in spec
