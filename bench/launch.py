"""How long until a job runs."""
import glob
from job import Job, KIT, PY
from procs import now


def linger(a, j, lives):
    """Waits for the launch commands, but at most --linger beyond the children's lives; their codes, and the time since the
    beginning, which is None if one has not returned."""
    rc = j.returned(lives + (a.limit if a.linger is None else a.linger))
    return rc, None if None in rc else round(now() - j.t0, 4)


def m_latency(a, name, spec, c):
    lives = 2 if c["n"] * c["nodes"] >= 32 else 0    # Open MPI hangs when so many end as soon as they have started
    j = Job(a, name, spec, c["n"], c["nodes"], [a.child, "{out}", "exit0", str(lives)])
    try:
        ok = j.wait_files("start", j.total, a.limit)
        rc, wall = linger(a, j, lives)
        rows = j.starts()
        if not ok:
            return dict(bad=f"{len(rows)} of {j.total} started, rc {rc}", tail=j.text()[-400:])
        t = [(r["t"] - j.t0_ns) / 1e9 for r in rows]
        return dict(last_s=round(max(t), 4), first_s=round(min(t), 4), lives=lives, wall_s=wall, rc=rc, bad=j.check(rows))
    finally:
        j.clean()


def m_torch(a, name, spec, c):
    j = Job(a, name, spec, c["n"], c["nodes"], [PY, f"{KIT}/torch_child.py", "{out}", "ok"])
    try:
        ok = j.wait_files("torch", j.total, a.limit)
        rc, wall = linger(a, j, 0)
        rows = [list(map(int, open(p).read().split())) for p in glob.glob(f"{j.dir}/torch.*")]
        if not ok:
            return dict(bad=f"{len(rows)} of {j.total} reduced, rc {rc}", tail=j.text()[-400:])
        bad = "" if sorted(r[4] for r in rows) == list(range(j.total)) and {r[5] for r in rows} == {j.total} else "wrong ranks or sum"
        return dict(reduce_s=round((max(r[3] for r in rows) - j.t0_ns) / 1e9, 4),
                    main_s=round((max(r[0] for r in rows) - j.t0_ns) / 1e9, 4),
                    init_s=round((max(r[3] for r in rows) - max(r[1] for r in rows)) / 1e9, 4), wall_s=wall, rc=rc, bad=bad)
    finally:
        j.clean()
