"""How long it takes until a job runs."""
from job import BENCH, PYTHON, Job
from procs import now


def wait_for_launchers(a, job, lifetime):
    """Waits for the launch commands, at most --linger longer than the children live. Returns their
    exit codes, and the time since the start, which is None if one has not returned."""
    rc = job.returned(lifetime + (a.limit if a.linger is None else a.linger))
    return rc, None if None in rc else round(now() - job.start, 4)


def m_latency(a, spec, c):
    # Open MPI hangs if so many tasks end as soon as they have started.
    lives = 2 if c["n"] * c["nodes"] >= 32 else 0
    with Job(a, spec, c, [a.child, "{out}", "exit0", str(lives)]) as job:
        started = job.wait_files("start", a.limit)
        rc, wall = wait_for_launchers(a, job, lives)
        rows = job.starts()
        if not started:
            return dict(bad=f"{len(rows)} of {job.total} started, exit codes {rc}",
                        tail=job.text()[-400:])
        t = [(r["t"] - job.start_ns) / 1e9 for r in rows]
        return dict(last_s=round(max(t), 4), first_s=round(min(t), 4), lives=lives, wall_s=wall,
                    rc=rc, bad=job.check(rows))


def m_torch(a, spec, c):
    with Job(a, spec, c, [PYTHON, f"{BENCH}/torch_child.py", "{out}", "ok"]) as job:
        reduced = job.wait_files("torch", a.limit)
        rc, wall = wait_for_launchers(a, job, 0)
        rows = [list(map(int, words)) for words in job.files("torch")]
        if not reduced:
            return dict(bad=f"{len(rows)} of {job.total} reduced, exit codes {rc}",
                        tail=job.text()[-400:])
        main, imported, _, done, ranks, sums = zip(*rows)
        right = sorted(ranks) == list(range(job.total)) and set(sums) == {job.total}
        since_start = lambda t: round((t - job.start_ns) / 1e9, 4)
        return dict(reduce_s=since_start(max(done)), main_s=since_start(max(main)),
                    init_s=round((max(done) - max(imported)) / 1e9, 4), wall_s=wall, rc=rc,
                    bad="" if right else "wrong ranks or sum")
