"""A run of one launcher."""
import glob, os, secrets, shlex, signal, subprocess, tempfile, time
from procs import alive, free_port, marked, now, Watch

KIT = os.path.dirname(os.path.abspath(__file__))
PY = "/usr/bin/python3"
TOKEN = secrets.token_hex(32)    # of all jobs of this run


class Job:
    count = 0

    def __init__(self, a, name, spec, n, nodes, child, port=None):
        Job.count += 1
        self.id = f"b{os.getpid()}x{Job.count}"
        self.child = a.child
        self.n, self.nodes, self.total = n, nodes, n * nodes
        self.hosts = a.hosts if nodes > 1 or spec.get("slurm") else None
        self.dir = tempfile.mkdtemp(prefix=f"bench-{self.id}-", dir=a.tmp)
        self.log = open(f"{self.dir}/log", "wb")
        f = dict(n=n, nodes=nodes, total=self.total, addr="10.77.0.11" if self.hosts and nodes > 1 else "127.0.0.1",
                 port=port or free_port(), job=self.id, python=PY, kit=KIT, torchrun=a.torchrun, rdzv=a.rdzv, token=TOKEN,
                 child=" ".join(shlex.quote(w.replace("{out}", self.dir)) for w in child))
        if nodes == 1:
            kind, cmds = "one", [spec["one"].format(node=0, **f)]
        elif "node" in spec:
            kind, cmds = "node", [spec["node"].format(node=i, **f) for i in range(nodes)]
        else:
            kind, cmds = "head", [spec["head"].format(node=0, **f)]
        self.kind, self.procs = kind, []
        if spec.get("slurm"):
            self.hosts.clear_slurm(a.limit)
        self.t0_ns, self.t0 = time.time_ns(), now()
        for i, c in enumerate(cmds):
            env = dict(os.environ, BENCH_JOB=self.id, BENCH_NODE=str(i) if kind != "head" else "", **(self.hosts.env if self.hosts else {}))
            argv = shlex.split(c)
            if self.hosts:
                argv = self.hosts.on(i, argv)
            self.procs.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                               env=env, start_new_session=True))

    @staticmethod
    def can(spec, nodes, measure):
        if measure == "rank":
            return "alone" in spec
        return "one" in spec if nodes == 1 else "node" in spec or "head" in spec

    def starts(self):
        rows = []
        for p in glob.glob(f"{self.dir}/start.*"):
            w = open(p).read().split()
            rows.append(dict(t=int(w[0]), pid=int(w[1]), rank=w[2], world=w[3], lrank=w[4], lworld=w[5],
                             addr=w[6], port=w[7], node=w[8], host=w[9]))
        return sorted(rows, key=lambda r: int(r["rank"]) if r["rank"].isdigit() else 1 << 30)

    def wait_files(self, kind, count, limit):
        end = now() + limit
        while now() < end:
            if len(glob.glob(f"{self.dir}/{kind}.*")) >= count:
                return True
            if all(p.poll() is not None for p in self.procs):
                return len(glob.glob(f"{self.dir}/{kind}.*")) >= count
            time.sleep(0.02)
        return False

    def check(self, rows):
        """What is wrong with the ranks the children were told; '' when nothing."""
        bad = []
        if sorted(r["rank"] for r in rows) != sorted(map(str, range(self.total))):
            bad.append("ranks " + ",".join(r["rank"] for r in rows)[:60])
        if {r["world"] for r in rows} != {str(self.total)}:
            bad.append(f"world {sorted({r['world'] for r in rows})}")
        per = {}
        for r in rows:
            per.setdefault(r["node"] if r["node"] != "-" else r["host"], []).append(r["lrank"])
        if any(sorted(v) != sorted(map(str, range(self.n))) for v in per.values()) or len(per) != self.nodes:
            bad.append(f"local ranks {per}"[:80])
        m = {(r["addr"], r["port"]) for r in rows}
        if len(m) != 1 or "-" in next(iter(m)):
            bad.append(f"master {sorted(m)}"[:80])
        return "; ".join(bad)

    def node_of(self, row):
        return int(row["node"]) if row["node"].isdigit() else int(row["host"][-1]) - 1 if self.nodes > 1 else 0

    def returned(self, limit):
        """Waits for all launch commands; their exit codes (None: still running)."""
        end = now() + limit
        for p in self.procs:
            try:
                p.wait(max(0.001, end - now()))
            except subprocess.TimeoutExpired:
                pass
        return [p.poll() for p in self.procs]

    def text(self):
        t = open(f"{self.dir}/log", errors="replace").read()
        return t.replace(self.dir, "$OUT").replace(KIT, "$KIT").replace(self.child, "$CHILD").replace(self.id, "JOB")

    def clean(self):
        """Kills, by pid, whatever of the job is left; returns how many processes that was."""
        left = 0
        for _ in range(50):
            pids = marked(self.id)
            if not pids:
                break
            left = max(left, len(pids))
            for p in pids:
                try:
                    os.kill(p, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)
        for p in self.procs:
            p.wait()
        self.log.close()
        subprocess.run(["rm", "-rf", self.dir])
        return left


def watch_all(job, rows, more=()):
    w = {f"r{r['rank']}": r["pid"] for r in rows} | dict(more)
    for i, p in enumerate(job.procs):
        w[f"L{i}"] = p.pid
    return Watch(w)


def secs(w, names, t):
    """Seconds from t until the last of names ended; None while one lives."""
    e = [w.end.get(x) for x in names]
    return None if None in e else round(max(e + [t]) - t, 4)
