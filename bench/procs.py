"""Processes: which ones belong to a job, when they end, what they use."""
import os
import select
import socket
import time

now = time.monotonic


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def stat(pid):
    """The fields of /proc/PID/stat after the name: the state is field 0, the parent field 1."""
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()


def parent(pid):
    return int(stat(pid)[1])


def name(pid):
    with open(f"/proc/{pid}/comm") as f:
        return f.read().strip()


def alive(pid):
    try:
        return stat(pid)[0] not in "ZX"
    except OSError:
        return False


def signal_all(pids, number):
    """Sends the signal to those that still exist."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def all_parents():
    """The parent of each process that exists now."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(pid)] = parent(pid)
        except OSError:
            pass    # it has ended
    return parents


def ancestors(pid, parents):
    """pid and its ancestors, the nearest first."""
    line = [pid]
    while line[-1] in parents:
        line.append(parents[line[-1]])
    return line


def marked(job):
    """The live processes that were started with BENCH_JOB=job, and their descendants. They are
    found even if the launcher has ended."""
    want, own, parents = f"BENCH_JOB={job}".encode(), set(), all_parents()
    for pid in parents:
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if want in f.read().split(b"\0"):
                    own.add(pid)
        except OSError:
            pass
    return [p for p in parents if not own.isdisjoint(ancestors(p, parents)) and alive(p)]


SHARED = ("slurmd",)    # daemons that serve all jobs


def job_tree(commands, ranks):
    """The live processes of a job: the launch commands, the daemons that started a rank for this
    job only, and all their descendants, without the ranks and the ranks' descendants."""
    parents = all_parents()
    ours = set(ancestors(os.getpid(), parents))
    roots = set(commands)
    for rank in ranks:
        line = ancestors(rank, parents)
        if roots.isdisjoint(line):
            end = next(i for i, p in enumerate(line)
                       if p in ours or p not in parents or name(p) in SHARED)
            roots.add(line[max(end - 1, 0)])
    lines = {p: ancestors(p, parents) for p in parents}
    return [p for p, line in lines.items()
            if not roots.isdisjoint(line) and set(ranks).isdisjoint(line) and alive(p)]


class Watch:
    """Notes when processes end: self.end[name] is the monotonic time. pids maps names to pids. It
    waits for events (pidfd) and does not poll."""

    def __init__(self, pids):
        self.poll, self.fds, self.end = select.poll(), {}, {}
        for name, pid in pids.items():
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                self.end[name] = now()
                continue
            self.fds[fd] = name
            self.poll.register(fd, select.POLLIN)

    def until(self, names, deadline):
        """Waits until all of names have ended, or until the deadline."""
        names = set(names)
        while not names <= self.end.keys() and now() < deadline:
            for fd, _ in self.poll.poll(max(1, (deadline - now()) * 1000)):
                self.end[self.fds.pop(fd)] = now()
                self.poll.unregister(fd)
                os.close(fd)

    def seconds(self, names, start):
        """Seconds from start until the last of names ended; None if one has not."""
        ends = [self.end.get(n) for n in names]
        return None if None in ends else round(max(ends + [start]) - start, 4)

    def close(self):
        for fd in self.fds:
            os.close(fd)


def memory(pid):
    """The process's memory in kB: Rss, Pss and Private."""
    sizes = dict(Rss=0, Pss=0, Private=0)
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            for line in f:
                key = line.split(":")[0]
                if key in ("Private_Clean", "Private_Dirty"):
                    key = "Private"
                if key in sizes:
                    sizes[key] += int(line.split()[1])
    except OSError:
        pass    # it has ended
    return sizes


def cpu_ticks(pids):
    """The clock ticks that the processes have spent on the CPU, in user and system mode."""
    total = 0
    for pid in pids:
        try:
            fields = stat(pid)
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass    # it has ended
    return total


def wakeups(pids):
    """How often threads of the processes have waited and been woken."""
    total = 0
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/status") as f:
                total += sum(int(line.split()[1]) for line in f if line.startswith("voluntary"))
    return total
