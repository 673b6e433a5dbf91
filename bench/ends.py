"""What a launcher tells of how a job ended, and two jobs on one port."""
import glob, os, re, signal, socket, time
from fault import aftermath, started
from job import Job, KIT, PY, watch_all
from procs import alive, now


def m_exit(a, name, spec, c):
    """how: all0 | exit7 | segv | kill9 | term (one rank) | early0 (rank 0 exits 0, the others go on) | all7 | noexec."""
    if c["how"] == "noexec":
        j = Job(a, name, spec, c["n"], c["nodes"], ["/nonexistent/program"])
        try:
            rc = j.returned(a.limit)
            return dict(rc=rc, launcher_s=round(now() - j.t0, 3), tail=j.text()[-1500:], bad="")
        finally:
            j.clean()
    j, rows, bad = started(a, name, spec, c, "wait", 0 if c["how"] in ("all0", "early0") else 7)
    if bad:
        return bad
    w = watch_all(j, rows)
    try:
        t, extra = now(), {}
        how = c["how"]
        if how in ("all0", "all7"):
            for r in rows:
                try:
                    os.kill(r["pid"], signal.SIGUSR1)
                except ProcessLookupError:
                    pass
            out = aftermath(a, j, rows, w, t, rows)
        elif how == "early0":
            os.kill(rows[0]["pid"], signal.SIGUSR1)
            w.until([f"L{i}" for i in range(len(j.procs))], t + 8)
            extra = dict(others_alive_after_8s=sum(alive(r["pid"]) for r in rows[1:]))
            for r in rows[1:]:
                if alive(r["pid"]):
                    os.kill(r["pid"], signal.SIGUSR1)
            out = aftermath(a, j, rows, w, t, rows)
        else:
            v = rows[-2]
            os.kill(v["pid"], dict(exit7=signal.SIGUSR1, segv=signal.SIGSEGV, kill9=signal.SIGKILL, term=signal.SIGTERM)[how])
            out = aftermath(a, j, rows, w, t, [r for r in rows if r is not v])
        return dict(out, **extra)
    finally:
        w.close()
        j.clean()


def judge(text, victim, total):
    """Reads the last 25 lines of the output: is the exception there, which ranks are named?"""
    lines = [l for l in text.splitlines() if l.strip()]
    last = "\n".join(lines[-25:])
    boom = [i for i, l in enumerate(lines) if "boom:" in l and "raise" not in l]
    named = sorted({int(x) for x in re.findall(r"(?i)\b(?:global_)?rank\W{0,12}(\d+)", last) if int(x) < total})
    named = sorted({*named, *(int(x) for x in re.findall(r"Process name: \[\[\d+,\d+\],(\d+)\]", last))})    # Open MPI's way
    rc = [int(x) for x in re.findall(r"Root Cause.*?\brank\s*:\s*(\d+)", text, re.S)]    # one block a node
    return dict(lines=len(lines), tracebacks=text.count("Traceback (most recent"), boom_in_last_25="boom:" in last,
                boom_lines_from_end=len(lines) - 1 - boom[-1] if boom else None, ranks_named_in_last_25=named,
                names_victim=victim in named, root_cause_block=rc)


def m_root(a, name, spec, c):
    """how = light (python, the others sleep) | torch (the others fail second, in gloo) | torchrec (with @record)."""
    total = c["n"] * c["nodes"]
    v = total - 2
    kid = [PY, f"{KIT}/raise_child.py", "{out}", str(total), str(v)] if c["how"] == "light" else \
          [PY, f"{KIT}/torch_child.py", "{out}", "raiserec" if c["how"] == "torchrec" else "raise", str(v)]
    j = Job(a, name, spec, c["n"], c["nodes"], kid)
    try:
        rc = j.returned(a.limit)
        t = j.text()
        return dict(judge(t, v, total), rc=rc, victim=v, tail=t[-6000:], bad="")
    finally:
        j.clean()


def m_port(a, name, spec, c):
    """The port the job is told to use is taken. how = cross (below) | silent (a listener that never answers) | job (another job of
    the same launcher, same port, started 1.5 s before, which waits; here what happens to the second, and then,
    when the first is ended in an orderly way, whether the second lives on)."""
    port = a.port
    if c["how"] == "cross":    # two torch jobs of the same port at the same moment, one all_reducing 1, one 100
        js = [Job(a, name, spec, c["n"], 1, [PY, f"{KIT}/torch_child.py", "{out}", "value", str(v)], port) for v in (1, 100)]
        try:
            rc = [j.returned(a.limit) for j in js]
            sums = [[int(open(p).read().split()[5]) for p in glob.glob(f"{j.dir}/torch.*")] for j in js]
            return dict(rc=rc, sums=sums, crossed=sum(s != v * c["n"] for v, x in zip((1, 100), sums) for s in x),
                        finished=sum(map(len, sums)), tail="".join(j.text()[-2000:] for j in js), bad="")
        finally:
            for j in js:
                j.clean()
    if c["how"] == "silent":
        s = [socket.socket(), socket.socket()]
        for x, p in zip(s, (port, 29400)):
            x.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            x.bind(("0.0.0.0", p))
            x.listen(64)
        j = Job(a, name, spec, c["n"], 1, [PY, f"{KIT}/torch_child.py", "{out}", "ok"], port)
        try:
            rc = j.returned(a.limit)
            return dict(rc=rc, launcher_s=round(now() - j.t0, 2), reduced=len(glob.glob(f"{j.dir}/torch.*")),
                        tail=j.text()[-4000:], bad="")
        finally:
            j.clean()
            for x in s:
                x.close()
    else:
        first = Job(a, name, spec, c["n"], 1, [a.child, "{out}", "wait", "0"], port)
        first.wait_files("start", c["n"], 30)
        j = Job(a, name, spec, c["n"], 1, [a.child, "{out}", "wait", "0"], port)
        try:
            j.wait_files("start", c["n"], a.limit)
            out = dict(second_started=len(j.starts()), second_rc=[p.poll() for p in j.procs],
                       second_s=round(now() - j.t0, 2), second_check=j.check(j.starts()) if j.starts() else "-",
                       first_alive=all(alive(r["pid"]) for r in first.starts()))
            for r in first.starts():
                os.kill(r["pid"], signal.SIGUSR1)
            out["first_rc"] = first.returned(20)
            t = now()
            rows = j.starts()
            if rows:
                w = watch_all(j, rows)
                w.until([f"r{r['rank']}" for r in rows], now() + 20)
                w.close()
                out["second_alive_20s_after_first_ended"] = sum(alive(r["pid"]) for r in rows)
                out["second_lived_s"] = round(now() - t, 1)
            out["tail"] = j.text()[-4000:]
            out["bad"] = ""
            return out
        finally:
            first.clean()
            j.clean()
