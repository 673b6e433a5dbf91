"""What happens when part of a job fails, or when the job is told to end."""
import contextlib
import os
import signal
import time
from job import BENCH, PYTHON, Job, live, rank
from procs import alive, marked, name, now, parent

SIGNALS = dict(kill9=signal.SIGKILL, exit1=signal.SIGUSR1, exit7=signal.SIGUSR1,
               segv=signal.SIGSEGV, term=signal.SIGTERM)    # SIGUSR1 makes a child exit


@contextlib.contextmanager
def running(a, spec, c, mode, code):
    """A job whose children have all started, and what they have noted."""
    if mode == "torchloop":
        child = [PYTHON, f"{BENCH}/torch_child.py", "{out}", "loop"]
    else:
        child = [a.child, "{out}", mode, str(code)]
    with Job(a, spec, c, child) as job:
        job.wait_started(a.limit)
        # The faults of several runs are spread over the launcher's polling interval.
        spread = 0.5 + spec.get("polls", 0.5) * (a.rep + 0.5) / a.reps
        time.sleep(spread if a.settle is None else a.settle)
        yield job, job.starts()


def aftermath(a, job, rows, w, start, others):
    """Waits until the other children have ended and the launchers have returned; then what is
    left."""
    names, launchers = [rank(r) for r in others], job.launchers()
    w.until(names + launchers, start + a.limit)
    rc = job.exit_codes()
    time.sleep(0.3)
    left = live(rows)
    result = dict(
        children_s=w.seconds(names, start), launcher_s=w.seconds(launchers, start),
        each_launcher_s=[w.seconds([x], start) for x in launchers], rc=rc,
        children_left=len(left), left_ranks=[r["rank"] for r in left],
        processes_left=len(marked(job.id)),
        lines=job.text().count("\n"), tail=job.text()[-3000:], bad="")
    if job.nodes > 1:
        for node in range(job.nodes):
            names = [rank(r) for r in others if job.node_of(r) == node]
            result[f"node{node}_s"] = w.seconds(names, start)
    return result


def m_fail(a, spec, c):
    """One child fails: how = kill9 | exit1 | segv; mode = wait | stubborn."""
    with running(a, spec, c, c["mode"], 1) as (job, rows), job.watch(rows) as w:
        victim = rows[-2 if job.nodes == 1 else -1]
        start = now()
        os.kill(victim["pid"], SIGNALS[c["how"]])
        return aftermath(a, job, rows, w, start, [r for r in rows if r is not victim])


def m_restart(a, spec, c):
    """One child fails, as in fail, and all are started again."""
    child = [a.child, "{out}", c["mode"], "1"]
    with Job(a, spec, c, child, env=dict(RDZV_MAX_RESTARTS="1", PET_MAX_RESTARTS="1")) as job:
        job.wait_started(a.limit)
        time.sleep(0.5 + spec.get("polls", 0.5) * (a.rep + 0.5) / a.reps)
        rows = job.starts()
        with job.watch(rows) as w:
            victim = rows[-2 if job.nodes == 1 else -1]
            start, start_ns = now(), time.time_ns()
            os.kill(victim["pid"], SIGNALS[c["how"]])
            names = [rank(r) for r in rows if r is not victim]
            w.until(names, start + a.limit)
            children = w.seconds(names, start)
            again = job.wait_files("start", a.limit, times=2)
            restarted = job.starts()
    old = {r["pid"] for r in rows}
    result = dict(children_s=children, restart_s=None, after_s=None, bad="")
    if again:
        last = max(r["t"] for r in restarted if r["pid"] not in old)
        result["restart_s"] = (last - start_ns) / 1e9
        result["after_s"] = result["restart_s"] - children
    return result


def m_agent(a, spec, c):
    """SIGKILL to the target: parent (of the last rank) | parent0 (of rank 0) | agent (of the last
    rank, which may be further up) | launcher | nodeloss (all processes of the last node, after its
    link has been taken down)."""
    with running(a, spec, c, c["mode"], 1) as (job, rows), job.watch(rows) as w:
        if c["target"] == "nodeloss":
            return lose_node(a, job, rows, w)
        pid = agent(spec, job, rows, c["target"])
        victim = name(pid)
        start = now()
        os.kill(pid, signal.SIGKILL)
        return dict(aftermath(a, job, rows, w, start, rows), victim=victim)


def agent(spec, job, rows, target):
    if target == "launcher":
        return job.procs[-1].pid
    pid = rows[0 if target == "parent0" else -1]["pid"]
    for _ in range(spec.get("agent_above", 1) if target == "agent" else 1):
        pid = parent(pid)
    return pid


def lose_node(a, job, rows, w):
    try:
        a.hosts.call("hosts", "cut", "2")
        start = now()
        a.hosts.call("hosts", "crash", "2")
        others = [r for r in rows if job.node_of(r) != job.nodes - 1]
        return dict(aftermath(a, job, rows, w, start, others), victim="node")
    finally:
        a.hosts.call("hosts", "heal", "2")


def m_signal(a, spec, c):
    """how = TERM | INT, sent to the (last) launcher; INTpg: SIGINT to its whole process group, as
    Ctrl-C does."""
    with running(a, spec, c, c["mode"], 1) as (job, rows), job.watch(rows) as w:
        how = c["how"]
        send = os.killpg if how.endswith("pg") else os.kill
        start = now()
        send(job.procs[-1].pid, signal.Signals["SIG" + how.removesuffix("pg")])
        return aftermath(a, job, rows, w, start, rows)


def m_tree(a, spec, c):
    """Each child has a child of its own (mode grand | grandsid); one of the children fails: how =
    kill9 (default) | exit1."""
    with running(a, spec, c, c["mode"], 1) as (job, rows):
        job.wait_files("grand", 5)
        grand = {r: int(pid) for pid, r in job.files("grand")}
        with job.watch(rows, {f"g{r}": pid for r, pid in grand.items()}) as w:
            victim = rows[-2]
            start = now()
            os.kill(victim["pid"], SIGNALS[c.get("how", "kill9")])
            others = [r for r in rows if r is not victim]
            result = aftermath(a, job, rows, w, start, others)
            everyone = [rank(r) for r in rows] + [f"g{r}" for r in grand]
            w.until(everyone, now() + 0.5)
            return dict(result, all_s=w.seconds(everyone, start),
                        grand_left=sum(alive(p) for p in grand.values()),
                        grand_left_failed_rank=int(alive(grand[victim["rank"]])))
