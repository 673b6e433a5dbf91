"""What happens when part of a job fails, or the job is told to end."""
import glob, os, signal, time
from job import Job, KIT, PY, secs, watch_all
from procs import alive, marked, now, ppid


def started(a, name, spec, c, mode, code):
    kid = [PY, f"{KIT}/torch_child.py", "{out}", "loop"] if mode == "torchloop" else [a.child, "{out}", mode, str(code)]
    j = Job(a, name, spec, c["n"], c["nodes"], kid)
    if not j.wait_files("start", j.total, a.limit):
        r = dict(bad=f"{len(j.starts())} of {j.total} started", tail=j.text()[-400:])
        j.clean()
        return None, None, r
    # The faults fall at all moments of the interval in which a launcher looks after its children.
    time.sleep(a.settle if a.settle is not None else 0.5 + spec.get("polls", 0.5) * (a.rep + 0.5) / a.reps)
    return j, j.starts(), None


def aftermath(a, j, rows, w, t, others):
    """Until every other child is gone and the launchers have returned; then what is left."""
    names = [f"r{r['rank']}" for r in others]
    L = [f"L{i}" for i in range(len(j.procs))]
    w.until(names + L, t + a.limit)
    rc = [p.poll() for p in j.procs]
    time.sleep(0.3)
    left = [r for r in rows if alive(r["pid"])]
    out = dict(children_s=secs(w, names, t), launcher_s=secs(w, L, t), each_launcher_s=[secs(w, [x], t) for x in L], rc=rc,
               children_left=len(left), left_ranks=[r["rank"] for r in left],
               processes_left=len(marked(j.id)), lines=j.text().count("\n"), tail=j.text()[-3000:], bad="")
    if j.nodes > 1:
        for k in range(j.nodes):
            out[f"node{k}_s"] = secs(w, [f"r{r['rank']}" for r in others if j.node_of(r) == k], t)
    return out


def m_fail(a, name, spec, c):
    """One child fails: how = kill9 | exit1 | segv; mode = wait | stubborn."""
    j, rows, bad = started(a, name, spec, c, c["mode"], 1)
    if bad:
        return bad
    w = watch_all(j, rows)
    try:
        v = rows[-2 if j.nodes == 1 else -1]
        sig = dict(kill9=signal.SIGKILL, exit1=signal.SIGUSR1, segv=signal.SIGSEGV)[c["how"]]
        t = now()
        os.kill(v["pid"], sig)
        return aftermath(a, j, rows, w, t, [r for r in rows if r is not v])
    finally:
        w.close()
        j.clean()


def m_agent(a, name, spec, c):
    """kill -9 of target = parent (of the last rank) | parent0 (of rank 0) | agent (of the last rank, which may be
    further above) | launcher; or of the whole last node, with its cable cut first (target = nodeloss)."""
    j, rows, bad = started(a, name, spec, c, c["mode"], 1)
    if bad:
        return bad
    w = watch_all(j, rows)
    try:
        v, tgt = rows[-1], c["target"]
        gone = []
        if tgt == "nodeloss":
            mine = [r for r in rows if j.node_of(r) == j.nodes - 1]
            a.hosts.call("cut", "2")
            t = now()
            a.hosts.call("crash", "2")
            gone = mine
        else:
            pid = j.procs[-1].pid if tgt == "launcher" else rows[0]["pid"] if tgt == "parent0" else v["pid"]
            for _ in range(dict(launcher=0, agent=spec.get("agent_above", 1)).get(tgt, 1)):
                pid = ppid(pid)
            victim = open(f"/proc/{pid}/comm").read().strip()
            t = now()
            os.kill(pid, signal.SIGKILL)
        r = aftermath(a, j, rows, w, t, [x for x in rows if x not in gone])
        r["victim"] = "node" if tgt == "nodeloss" else victim
        return r
    finally:
        w.close()
        j.clean()
        if c["target"] == "nodeloss":
            a.hosts.call("heal", "2")


def m_signal(a, name, spec, c):
    """how = TERM | INT to the (last) launcher; INTpg: SIGINT to its whole process group, as Ctrl-C does."""
    j, rows, bad = started(a, name, spec, c, c["mode"], 1)
    if bad:
        return bad
    w = watch_all(j, rows)
    try:
        t = now()
        if c["how"].endswith("pg"):
            os.killpg(j.procs[-1].pid, getattr(signal, "SIG" + c["how"][:-2]))
        else:
            os.kill(j.procs[-1].pid, getattr(signal, "SIG" + c["how"]))
        return aftermath(a, j, rows, w, t, rows)
    finally:
        w.close()
        j.clean()


def m_tree(a, name, spec, c):
    """Children with a grandchild each (mode grand | grandsid); one child fails: how = kill9 (default) | exit1."""
    j, rows, bad = started(a, name, spec, c, c["mode"], 1)
    if bad:
        return bad
    j.wait_files("grand", j.total, 5)
    g = {w[1]: int(w[0]) for w in (open(p).read().split() for p in glob.glob(f"{j.dir}/grand.*"))}
    w = watch_all(j, rows, {f"g{rank}": pid for rank, pid in g.items()})
    try:
        v = rows[-2]
        t = now()
        os.kill(v["pid"], signal.SIGUSR1 if c.get("how") == "exit1" else signal.SIGKILL)
        r = aftermath(a, j, rows, w, t, [x for x in rows if x is not v])
        every = [f"r{x['rank']}" for x in rows] + [f"g{rank}" for rank in g]
        w.until(every, now() + 0.5)
        r["all_s"] = secs(w, every, t)
        r["grand_left"] = sum(alive(p) for p in g.values())
        r["grand_left_failed_rank"] = int(alive(g[v["rank"]]))
        return r
    finally:
        w.close()
        j.clean()
