"""Ranks of PyTorch programs, started quickly: importing torch takes a second of CPU time, so that
one process imports it and forks the ranks of many jobs.

    ranks.py serve SOCKET      imports torch, and forks a rank for each `ranks.py PROGRAM SOCKET`
    ranks.py PROGRAM SOCKET    represents a rank that the server forks. The rank has the environment
                               and the standard streams of this process and gets its signals. This
                               process ends as the rank does, and if one dies, so does the other.
    ranks.py PROGRAM           runs a rank in this process

PROGRAM is one of these:

    fault    all ranks all_reduce over gloo until one of them fails as RANKS_FAULT says
    store    the ranks exchange the name of their job through torch's TCPStore, and keep the store
             until a process opens the named pipe RANKS_END
    train    examples/train.py until epoch 9, with the snapshot RANKS_DIR/snapshot.pt. RANKS_FAULTS,
             if it is set, has a fault for each attempt; otherwise the last epoch begins when
             RANKS_DIR/finish exists

Each rank leaves its record in RANKS_DIR; see record in worker_test.go, and for train enterAttempt.
fault and train draw progress bars. On SIGTERM they save for 0.5 to 2 s and exit with 0.
"""
import contextlib
import ctypes
import faulthandler
import json
import os
import random
import resource
import selectors
import signal
import socket
import sys
import time


def leave_record():
    path = os.path.join(os.environ["RANKS_DIR"], os.environ["RANK"] + ".json")
    with open(path + ".draft", "w") as file:
        json.dump({"PID": os.getpid(), "Env": dict(os.environ)}, file)
    os.rename(path + ".draft", path)


def run_fault():
    from torch.distributed.elastic.multiprocessing.errors import record

    fault = json.loads(os.environ["RANKS_FAULT"])
    train = record(all_reduce) if fault["Kind"] == "record" else all_reduce
    train(fault)


def all_reduce(fault):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, save)
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
        draw_progress("step", step)


def draw_progress(unit, number):
    print(f"\r{unit} {number}", end="", file=sys.stderr, flush=True)


def save(*_):
    time.sleep(0.5 + 1.5 * random.random())
    os._exit(0)


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


def run_store():
    import datetime
    from torch.distributed import rendezvous

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    run = os.environ["RDZV_RUN_ID"]
    timeout = datetime.timedelta(seconds=60)
    store, _, _ = next(rendezvous("env://", timeout=timeout))  # as init_process_group does
    store.set(f"run{rank}", run)
    runs = [store.get(f"run{r}").decode() for r in range(size)]
    if runs != [run] * size:
        sys.exit(f"rank {rank} of {run}: the store has the runs {runs}")
    leave_record()
    # If hundreds of ranks polled for a file, that would be most of the load.
    os.close(os.open(os.environ["RANKS_END"], os.O_RDONLY))
    os._exit(0)  # in a forked process, the destructor of torch 1.13's TCPStore does not return


LAST_EPOCH = 9


def run_train():
    """Runs the example. Ranks that are to fail do so at the beginning of an epoch, or when rank 0
    writes its snapshot."""
    import functools
    import runpy
    import torch.nn.parallel
    from torch.utils.data import DistributedSampler

    for number, code in ((signal.SIGUSR1, 7), (signal.SIGUSR2, 93)):
        signal.signal(number, lambda *_, code=code: fail("_exit", "", code))
    signal.signal(signal.SIGTERM, save)
    leave_attempt()
    faults = json.loads(os.environ.get("RANKS_FAULTS", "[]"))
    attempt, rank = int(os.environ["RDZV_ATTEMPT"]), int(os.environ["RANK"])
    fault = faults[attempt] if attempt < len(faults) else {"Ranks": []}
    fails = rank in fault["Ranks"]
    set_epoch = DistributedSampler.set_epoch

    def begin_epoch(sampler, epoch):
        draw_progress("epoch", epoch)
        if epoch == LAST_EPOCH and not faults:
            while not os.path.exists(os.path.join(os.environ["RANKS_DIR"], "finish")):
                time.sleep(0.01)
        if fails and epoch == fault["Epoch"]:
            if fault["Kind"] == "save":
                os.fsync = killed
            else:
                fail(fault["Kind"], f"no rows in epoch {epoch}", 1)
        set_epoch(sampler, epoch)

    def killed(file):  # after the new snapshot has been written, before it replaces the old one
        fail("kill", "", 0)

    DistributedSampler.set_epoch = begin_epoch
    if not faults:  # so that more than two ranks always add in the same order
        ddp = torch.nn.parallel.DistributedDataParallel
        torch.nn.parallel.DistributedDataParallel = functools.partial(ddp, find_unused_parameters=True)
    if fails and fault["Epoch"] == 0:
        fail(fault["Kind"], "", 1)
    sys.argv = ["train.py", "--until", str(LAST_EPOCH), "--snapshot",
                os.path.join(os.environ["RANKS_DIR"], "snapshot.pt")]
    here = os.path.dirname(os.path.abspath(__file__))
    runpy.run_path(os.path.join(here, "../../examples/train.py"), run_name="__main__")
    os._exit(0)  # as in run_store


worker = child = 0  # the process that a forked rank represents, if this is one, and a child of that


def leave_attempt():
    directory = os.path.join(os.environ["RANKS_DIR"], os.environ["RDZV_ATTEMPT"])
    os.makedirs(directory, exist_ok=True)
    rank, pid = os.environ["RANK"], worker or os.getpid()
    draft = os.path.join(os.environ["RANKS_DIR"], f"draft{pid}")
    with open(draft, "w") as file:
        print(pid, os.environ["MASTER_PORT"], rank, child or pid, file=file)
    os.rename(draft, os.path.join(directory, rank))


PROGRAMS = {"fault": run_fault, "store": run_store, "train": run_train}


def serve(path):
    """Forks ranks until the test ends. In each forked rank it returns the rank's program."""
    import torch.distributed.elastic.multiprocessing.errors
    import torch.utils.data

    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(1024)
    wait = selectors.DefaultSelector()
    wait.register(server, selectors.EVENT_READ)
    wait.register(os.pidfd_open(os.getppid()), selectors.EVENT_READ)
    print("listening", flush=True)
    while True:
        for key, _ in wait.select():
            if key.fileobj is server:
                connection, _ = server.accept()
                message, files, _, _ = socket.recv_fds(connection, 64, 4)
                pid = os.fork()
                if pid == 0:
                    global worker, child
                    take_over(files)
                    program, worker, child = message.decode().split()
                    return program
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
                continue  # both of its events came at once, and it is closed
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


def take_over(files):
    """Gives this process the standard streams and the environment of another one."""
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


def represent(program, path):
    """Has the server fork a rank, passes on signals to it, and ends as it does."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    environ = os.open("/proc/self/environ", os.O_RDONLY)
    names = ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "ABRT")
    numbers = [signal.Signals["SIG" + name] for name in names]
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    message = f"{program} {os.getpid()} {start_children() if program != 'store' else 0}"
    socket.send_fds(connection, [message.encode()], [0, 1, 2, environ])
    pass_on = lambda number, _: connection.send(bytes([number]))
    for number in numbers:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
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


def start_children():
    """Starts a child, like one of a DataLoader, and one in a session of its own, which ignore
    SIGTERM. Returns the pid of the latter."""
    for start in (lambda: None, os.setsid):
        pid = os.fork()
        if pid == 0:
            start()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.execvp("sleep", ["sleep", "1000"])
    return pid


def main():
    program, *path = sys.argv[1:]
    if program == "serve":
        PROGRAMS[serve(*path)]()
        return
    if program == "fault":
        leave_record()
    if path:
        represent(program, *path)
    else:
        PROGRAMS[program]()


if __name__ == "__main__":
    main()
