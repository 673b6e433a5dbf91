"""What a job costs while it runs, and what one query costs."""
import os
import shlex
import statistics
import subprocess
import time
from fault import running
from job import BENCH, PYTHON
from procs import cpu_ticks, job_tree, memory, now, parent, wakeups


def program(pid):
    return os.readlink(f"/proc/{pid}/exe")


def owner(pid, pids):
    """The uppermost ancestor of pid, among pids, that runs the same program: a runner counts
    as its agent."""
    above = parent(pid)
    return owner(above, pids) if above in pids and program(above) == program(pid) else pid


def count(pids, kind):
    return sum(len(os.listdir(f"/proc/{p}/{kind}")) for p in pids)


def m_mem(a, spec, c):
    """Memory, and CPU time while nothing happens, of all processes of the job except its
    children."""
    with running(a, spec, c, "wait", 1) as (job, rows):
        time.sleep(5)    # a Go program wakes often in its first seconds
        pids = job_tree([p.pid for p in job.procs], [r["pid"] for r in rows])
        sizes = {p: memory(p) for p in pids}
        private = {}
        for p in pids:
            o = owner(p, pids)
            private[o] = private.get(o, 0) + sizes[p]["Private"]
        ticks, woken, start = cpu_ticks(pids), wakeups(pids), now()
        time.sleep(3)
        took = now() - start
        return dict(
            processes=len(pids), rss_kb=sum(s["Rss"] for s in sizes.values()),
            pss_kb=sum(s["Pss"] for s in sizes.values()), private_kb=sum(private.values()),
            typical_kb=int(statistics.median(private.values())), largest_kb=max(private.values()),
            threads=count(pids, "task"), fds=count(pids, "fd"),
            idle_cpu_ms_per_s=round((cpu_ticks(pids) - ticks) * 10 / took, 2),
            wakeups_per_s=round((wakeups(pids) - woken) / took, 2), bad="")


def m_rank(a, spec, c):
    """A script under Open MPI asks for its rank, 20 times: from the start of the command until its
    end."""
    argv = shlex.split(spec["alone"].format(rdzv=a.rdzv, python=PYTHON, bench=BENCH))
    env = dict(os.environ, OMPI_COMM_WORLD_RANK="3", OMPI_COMM_WORLD_SIZE="8",
               OMPI_COMM_WORLD_LOCAL_RANK="3", OMPI_COMM_WORLD_LOCAL_SIZE="8")
    took, answers = [], set()
    for _ in range(20):
        start = now()
        r = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        took.append(now() - start)
        answers.add((r.returncode, r.stdout.strip()))
    right = answers == {(0, spec["prints"])}
    return dict(ask_s=round(statistics.median(took), 5),
                bad="" if right else f"exit code and output: {sorted(answers)}")
