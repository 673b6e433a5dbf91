"""What a job costs while it runs, and what one question costs."""
import os, shlex, statistics, subprocess, time
from fault import started
from job import KIT, PY
from procs import job_tree, now, ppid, smaps, switches, ticks


def owner(pid, pids):
    """The uppermost of the processes above pid that run the same program: a watchdog and its sentinel count as their agent's."""
    up, program = ppid(pid), lambda p: os.readlink(f"/proc/{p}/exe")
    return owner(up, pids) if up in pids and program(up) == program(pid) else pid


def m_mem(a, name, spec, c):
    """Memory and idle CPU of everything of the job but its children, in a quiet job."""
    j, rows, bad = started(a, name, spec, c, "wait", 1)
    if bad:
        return bad
    try:
        time.sleep(1)
        pids = job_tree([p.pid for p in j.procs], [r["pid"] for r in rows])
        m, private = [smaps(p) for p in pids], {}
        for p, x in zip(pids, m):
            o = owner(p, pids)
            private[o] = private.get(o, 0) + x["Private"]
        c0, s0, t = ticks(pids), switches(pids), now()
        time.sleep(3)
        took = now() - t
        cpu, woke = (ticks(pids) - c0) * 10 / took, (switches(pids) - s0) / took
        return dict(processes=len(pids), rss_kb=sum(x["Rss"] for x in m), pss_kb=sum(x["Pss"] for x in m), private_kb=sum(private.values()),
                    typical_kb=int(statistics.median(private.values())), largest_kb=max(private.values()),
                    threads=sum(len(os.listdir(f"/proc/{p}/task")) for p in pids), fds=sum(len(os.listdir(f"/proc/{p}/fd")) for p in pids),
                    idle_cpu_ms_per_s=round(cpu, 2), wakeups_per_s=round(woke, 2), bad="")
    finally:
        j.clean()


def m_rank(a, name, spec, c):
    """A script asks for its rank, 20 times: from the start of the command until its end."""
    f = dict(rdzv=a.rdzv, python=PY, kit=KIT)
    argv, env = shlex.split(spec["alone"].format(**f)), dict(os.environ, RANK="3", WORLD_SIZE="8", LOCAL_RANK="3", LOCAL_WORLD_SIZE="8")
    took, said = [], set()
    for _ in range(20):
        t = now()
        r = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        took.append(now() - t)
        said.add((r.returncode, r.stdout.strip()))
    want = {(0, spec["says"])}
    return dict(ask_s=round(statistics.median(took), 5), bad="" if said == want else f"said {sorted(said)}")
