"""The ranks of TestChaos: they all_reduce over gloo until one of them fails as CHAOS_FAULT says.

    ranks.py rank             is one rank
    ranks.py serve SOCKET     imports torch once, and forks a rank for each `ranks.py forked SOCKET`
    ranks.py forked SOCKET    stands in for a rank that the server forks: the rank has the environment and the streams of
                              this process and gets its signals, this process ends as the rank does, and they die together
"""
import contextlib, ctypes, faulthandler, json, os, resource, selectors, signal, socket, sys, time


def rank(fault):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    reduced = torch.ones(1000)
    step = 0
    while True:
        if step == fault["After"]:
            if fault["Injected"]:
                print("at work", flush=True)
            elif dist.get_rank() == fault["Rank"]:
                time.sleep(fault["Delay"])
                fail(fault["Kind"], fault["Word"], fault["Code"])
        dist.all_reduce(reduced)
        reduced /= dist.get_world_size()
        step += 1


def fail(kind, word, code):
    if kind in ("raise", "record"):
        raise ValueError(word)
    if kind == "cause":
        try:
            {}[word]
        except KeyError as cause:
            raise RuntimeError("no batch " + word) from cause
    if kind == "torch":
        import torch

        torch.ones(2, 3) @ torch.ones(5, 7)
    if kind == "exit":
        print(word, file=sys.stderr)
        sys.exit(code)
    if kind == "_exit":
        os._exit(code)
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "segv":
        ctypes.string_at(0)
    if kind == "abort":
        os.abort()


def run():
    from torch.distributed.elastic.multiprocessing.errors import record

    fault = json.loads(os.environ["CHAOS_FAULT"])
    (record(rank) if fault["Kind"] == "record" else rank)(fault)


def serve(path):
    """Returns in every forked rank."""
    import torch.distributed.elastic.multiprocessing.errors

    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    wait = selectors.DefaultSelector()
    wait.register(server, selectors.EVENT_READ)
    wait.register(os.pidfd_open(os.getppid()), selectors.EVENT_READ)
    print("listening", flush=True)
    while True:
        for key, _ in wait.select():
            if key.fileobj is server:
                connection, _ = server.accept()
                _, files, _, _ = socket.recv_fds(connection, 1, 4)
                pid = os.fork()
                if pid == 0:
                    return become(files)
                for file in files:
                    os.close(file)
                pidfd = os.pidfd_open(pid)
                for file in (connection, pidfd):
                    wait.register(file, selectors.EVENT_READ, (connection, pid, pidfd))
                continue
            if not key.data:
                sys.exit("the test has ended")
            connection, pid, pidfd = key.data
            if connection.fileno() < 0:
                continue  # closed: both its events came at once
            if key.fileobj is connection:
                signals = connection.recv(64)
                for number in signals or [signal.SIGKILL]:
                    os.kill(pid, number)
                if signals:
                    continue
            _, status = os.waitpid(pid, 0)
            with contextlib.suppress(BrokenPipeError):
                connection.sendall(b"%d" % os.waitstatus_to_exitcode(status))
            wait.unregister(connection)
            wait.unregister(pidfd)
            connection.close()
            os.close(pidfd)


def become(files):
    """Takes over streams and environment."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    *streams, environ = files
    for number, file in enumerate(streams):
        os.dup2(file, number)
        os.close(file)
    with open(environ, "rb") as text:
        entries = text.read().split(b"\0")[:-1]
    os.environ.clear()
    os.environb.update(entry.split(b"=", 1) for entry in entries)
    if os.environ.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()


def stand_in(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    environ = os.open("/proc/self/environ", os.O_RDONLY)
    socket.send_fds(connection, [b"."], [0, 1, 2, environ])
    for name in ("TERM", "INT", "HUP", "QUIT", "USR1", "ABRT"):
        signal.signal(signal.Signals["SIG" + name], lambda number, _: connection.send(bytes([number])))
    code = connection.recv(16)
    if not code:
        sys.exit("the server of ranks has ended")
    code = int(code)
    if code >= 0:
        os._exit(code)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):  # SIGKILL has no handler
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)


def note():
    """What the test wants to know of every worker; see record in worker_test.go."""
    with open(os.path.join(os.environ["CHAOS_DIR"], os.environ["RANK"] + ".json"), "w") as file:
        json.dump({"PID": os.getpid(), "Env": dict(os.environ)}, file)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        note()
    if sys.argv[1] == "forked":
        stand_in(sys.argv[2])
    else:
        run()
