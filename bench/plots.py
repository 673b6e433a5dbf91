#!/usr/bin/python3
"""plots.py: draws the plots of docs/performance.md from the runs that `make bench BENCH=fail` and
`make scale` have left in bin/, those whose runs are there: docs/pictures/failure.svg, the time until
the other ranks have ended, and joining.svg, the CPU time of the store until all agents have joined,
which depends less on other work of the machine than the time itself."""
import json
import math
import os
import statistics

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RANKS = 4  # of the failure that is drawn

# The launchers of bench/launchers.toml that are drawn, with their names there.
ROWS = [("torchrun-static", "torchrun 1.13"), ("torchrun-tuned", "torchrun, as 2.6"),
        ("openmpi", "mpirun (Open MPI)"), ("srun", "srun -K"),
        ("rdzv", "rdzv"), ("rdzv-mpirun", "rdzv under mpirun"), ("rdzv-srun", "rdzv under srun")]

STYLE = """<style>
  text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
  .note { font-size: 12px; fill: #59636e; stroke: #ffffff; stroke-width: 4px; paint-order: stroke }
  .end { text-anchor: end }
  .middle { text-anchor: middle }
  .paper { fill: #ffffff; stroke: #d1d9e0 }
  .grid { stroke: #d1d9e0 }
  .peer { stroke: #8c959f; fill: #8c959f }
  .own { stroke: #0969da; fill: #0969da }
  .other { stroke: #1a7f37; fill: #1a7f37 }
  .line { stroke-width: 3; fill: none }
  .open { fill: #ffffff; stroke-width: 2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .note { fill: #9da7b3; stroke: #0d1117 }
    .paper { fill: #0d1117; stroke: #3d444d }
    .grid { stroke: #3d444d }
    .own { stroke: #4493f8; fill: #4493f8 }
    .other { stroke: #3fb950; fill: #3fb950 }
    .line { fill: none }
    .open { fill: #0d1117 }
  }
</style>"""


def svg(width, height, title, body):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img">', f"<title>{title}</title>", STYLE,
        f'<rect class="paper" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>',
        *body, "</svg>"]) + "\n"


def seconds(s):
    return f"{s * 1000:.0f} ms" if s < 1 else f"{s:.1f} s"


def text(x, y, words, kind=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{words}</text>'


def failure(runs):
    """A row per launcher: a line over all runs and a dot at the median until the others have ended,
    and a ring at the median until the command has returned."""
    times = {}
    for name, _ in ROWS:
        own = [r for r in runs if r["launcher"] == name and r["n"] == RANKS and not r.get("bad")]
        times[name] = tuple(sorted(r[k] for r in own) for k in ("children_s", "launcher_s"))
    last = max(max(ended[-1], statistics.median(back)) for ended, back in times.values())
    left, right, top, step = 170, 690, 66, 34
    bottom = top + step * len(ROWS)

    def x(s):
        return left + (right - left) * s / math.ceil(last)

    body = [text(20, 30, f"One of {RANKS} ranks is killed at 0 s. When have the others ended?")]
    for s in range(math.ceil(last) + 1):
        body.append(f'<path class="grid" d="M{x(s):.1f} {top - 18}V{bottom - 8}"/>')
        body.append(text(x(s), bottom + 10, f"{s} s", "note middle"))
    for i, (name, label) in enumerate(ROWS):
        ended, returned = times[name]
        y, kind = top + step * i, "own" if "rdzv" in name else "peer"
        middle, back = statistics.median(ended), statistics.median(returned)
        body.append(text(left - 14, y + 5, label, "end"))
        body.append(f'<path class="line {kind}" d="M{x(ended[0]):.1f} {y}H{x(ended[-1]):.1f}"/>')
        body.append(f'<circle class="{kind}" cx="{x(middle):.1f}" cy="{y}" r="6"/>')
        body.append(f'<circle class="{kind} open" cx="{x(back):.1f}" cy="{y}" r="4"/>')
        edge = max(x(ended[-1]), x(back), x(middle))
        body.append(text(edge + 14, y + 5, f"{seconds(middle)}, returned after {seconds(back)}", "note"))
    y = bottom + 36
    body += [f'<circle class="peer" cx="{left}" cy="{y - 4}" r="6"/>',
             text(left + 12, y, "all others have ended: median, and all runs", "note"),
             f'<circle class="peer open" cx="{left + 290}" cy="{y - 4}" r="4"/>',
             text(left + 302, y, "the command has returned: median", "note")]
    return svg(880, y + 18, "After SIGKILL to one of "
               f"{RANKS} ranks, the others end after " + ", ".join(
                   f"{seconds(statistics.median(times[n][0]))} ({label})" for n, label in ROWS), body)


def joining(rows):
    """CPU time against the number of agents, both logarithmic: a line for each connection."""
    series = {}
    for connection, agents, s in rows:
        series.setdefault(connection, []).append((agents, s))
    points = [p for line in series.values() for p in line]
    width, left, right, top, bottom = 740, 80, 570, 60, 300
    low, high = (f(a for a, _ in points) for f in (min, max))
    floor, ceiling = (10.0 ** f(math.log10(g(s for _, s in points)))
                      for f, g in ((math.floor, min), (math.ceil, max)))

    def x(a):
        return left + (right - left) * math.log(a / low) / math.log(high / low)

    def y(s):
        return bottom - (bottom - top) * math.log(s / floor) / math.log(ceiling / floor)

    body = [text(20, 30, "CPU time of the agent with the store, until all agents have joined")]
    for decade in range(round(math.log10(floor)), round(math.log10(ceiling)) + 1):
        s = 10.0 ** decade
        body.append(f'<path class="grid" d="M{left} {y(s):.1f}H{right}"/>')
        body.append(text(left - 10, y(s) + 4, f"{s * 1000:g} ms" if s < 1 else f"{s:g} s", "note end"))
    for a in sorted({a for a, _ in points}):
        body.append(text(x(a), bottom + 20, str(a), "note middle"))
    body.append(text((left + right) / 2, bottom + 40, "agents", "note middle"))
    for kind, (connection, line) in zip(("own", "other"), series.items()):
        line.sort()
        path = "L".join(f"{x(a):.1f} {y(s):.1f}" for a, s in line)
        body.append(f'<path class="line {kind}" d="M{path}"/>')
        body += [f'<circle class="{kind}" cx="{x(a):.1f}" cy="{y(s):.1f}" r="4"/>' for a, s in line]
    ends = sorted((y(line[-1][1]), connection, line[-1][1]) for connection, line in series.items())
    for i, (at, connection, s) in enumerate(ends):
        at = at + 5 if i == 0 else max(at + 5, ends[i - 1][0] + 23)
        body.append(text(right + 14, at, f"{connection}: {seconds(s)}"))
    return svg(width, bottom + 60, "CPU time to join against the number of agents: " + "; ".join(
        f"{c}: " + ", ".join(f"{a} in {seconds(s)}" for a, s in line)
        for c, line in series.items()), body)


def scale_rows(path):
    """(connection, agents, seconds of CPU time until all have joined) of the lines of make scale in
    which a worker fails."""
    with open(path) as f:
        for line in f:
            cells = [c.strip() for c in line.strip("|\n ").split("|")]
            if len(cells) > 4 and cells[0].isdigit() and cells[2] == "fail":
                name = {"plain": "--insecure", "TLS": "encrypted"}[cells[1]]
                yield name, int(cells[0]), float(cells[6]) / 1000


def write(name, picture):
    with open(f"{ROOT}/docs/pictures/{name}", "w") as f:
        f.write(picture)
    print(f"docs/pictures/{name}")


def main():
    runs, scale = f"{ROOT}/bin/bench/fail.jsonl", f"{ROOT}/bin/scale.md"
    if os.path.exists(runs):
        with open(runs) as f:
            write("failure.svg", failure([json.loads(line) for line in f]))
    if os.path.exists(scale):
        write("joining.svg", joining(list(scale_rows(scale))))


if __name__ == "__main__":
    main()
