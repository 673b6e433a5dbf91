"""Processes: which are of a job, when they end, what they use."""
import os, select, socket, time

now = time.monotonic


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def ppid(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


def marked(job):
    """The live processes started with BENCH_JOB=job, and those below them: also those whose launcher has ended."""
    want, own, parents = f"BENCH_JOB={job}".encode(), set(), tree()
    for pid in parents:
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if want in f.read().split(b"\0"):
                    own.add(pid)
        except OSError:
            pass
    return [p for p in parents if not own.isdisjoint(above(p, parents)) and alive(p)]


def tree():
    """The parent of each process, as it is now."""
    parents = {}
    for d in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(d)] = ppid(d)
        except OSError:
            pass    # it has ended
    return parents


SHARED = ("slurmd",)    # daemons that serve every job


def name(pid):
    with open(f"/proc/{pid}/comm") as f:
        return f.read().strip()


def above(pid, parents):
    """pid and its ancestors, the nearest first."""
    line = [pid]
    while line[-1] in parents:
        line.append(parents[line[-1]])
    return line


def job_tree(commands, ranks):
    """The live processes of a job: the launch commands, the daemons that started a rank for this job alone, and everything
    below them. The ranks and what is below them are left out."""
    parents = tree()
    others = set(above(os.getpid(), parents))
    roots = set(commands)
    for rank in ranks:
        line = above(rank, parents)
        if roots.isdisjoint(line):
            end = next(i for i, p in enumerate(line) if p in others or p not in parents or name(p) in SHARED)
            roots.add(line[max(end - 1, 0)])
    return [p for p in parents if not roots.isdisjoint(line := above(p, parents)) and set(ranks).isdisjoint(line) and alive(p)]


class Watch:
    """When each pid (name -> pid) ended: self.end[name], a monotonic time. Event-driven (pidfd), no polling."""
    def __init__(self, pids):
        self.poll, self.fd, self.end = select.poll(), {}, {}
        for name, pid in pids.items():
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                self.end[name] = now()
                continue
            self.fd[fd] = name
            self.poll.register(fd, select.POLLIN)

    def until(self, names, deadline):
        """Waits until all of names have ended, or the deadline; True when they all have."""
        names = set(names)
        while not names <= self.end.keys() and now() < deadline:
            for fd, _ in self.poll.poll(max(1, (deadline - now()) * 1000)):
                self.end[self.fd.pop(fd)] = now()
                self.poll.unregister(fd)
                os.close(fd)
        return names <= self.end.keys()

    def close(self):
        for fd in self.fd:
            os.close(fd)


def smaps(pid):
    d = dict(Rss=0, Pss=0, Private=0)
    try:
        for l in open(f"/proc/{pid}/smaps_rollup"):
            k = l.split(":")[0]
            if k in d:
                d[k] += int(l.split()[1])
            elif k.startswith("Private_") and "Hugetlb" not in k:
                d["Private"] += int(l.split()[1])
    except OSError:
        pass
    return d


def ticks(pids):
    n = 0
    for p in pids:
        try:
            f = open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()
            n += int(f[11]) + int(f[12])
        except OSError:
            pass
    return n


def switches(pids):
    """How often threads of pids have waited and been woken."""
    n = 0
    for p in pids:
        for t in os.listdir(f"/proc/{p}/task"):
            with open(f"/proc/{p}/task/{t}/status") as f:
                n += sum(int(l.split()[1]) for l in f if l.startswith("voluntary"))
    return n
