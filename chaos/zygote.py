"""The ranks of a fault campaign: they all_reduce over gloo until one of them fails as it was told.

    zygote.py rank            is one rank
    zygote.py serve SOCKET    imports torch once, and forks a rank for everybody who connects

Who connects sends its environment, as JSON, with its stdin, stdout and stderr; is told how its rank ended ("exit 1",
"signal 9"); may send "signal N" in between; and takes its rank with it when it goes.
"""
import array, ctypes, faulthandler, json, os, selectors, signal, socket, sys, time

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


def rank():
    fault = json.loads(os.environ["CHAOS_FAULT"])
    mine = int(os.environ["RANK"]) == fault["rank"]
    dist.init_process_group("gloo")
    reduced = torch.ones(1000)
    step = 0
    while True:
        if step == fault["after"]:
            if mine:
                time.sleep(fault["delay"])
                fail(fault)
            if fault["kind"] == "agent" and dist.get_rank() == 0:
                open(fault["mark"], "w").close()
        dist.all_reduce(reduced)
        reduced /= dist.get_world_size()
        step += 1


def fail(fault):
    kind, word = fault["kind"], fault["word"]
    if kind in ("raise", "record"):
        raise ValueError(word)
    if kind == "cause":
        try:
            {}[word]
        except KeyError as cause:
            raise RuntimeError("no batch " + word) from cause
    if kind == "torch":
        torch.ones(2, 3) @ torch.ones(5, 7)
    if kind == "exit":
        print(word, file=sys.stderr)
        sys.exit(fault["code"])
    if kind == "_exit":
        os._exit(fault["code"])
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "segv":
        ctypes.string_at(0)
    if kind == "abort":
        os.abort()
    # "agent": somebody kills this rank's agent


def run():
    if json.loads(os.environ["CHAOS_FAULT"])["kind"] == "record":
        record(rank)()
    else:
        rank()


def serve(path):
    """Returns in every forked rank."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    wait = selectors.DefaultSelector()
    wait.register(server, selectors.EVENT_READ, None)
    wait.register(sys.stdin, selectors.EVENT_READ, None)
    ranks = {}  # by connection: pid and pidfd
    while True:
        for key, _ in wait.select():
            if key.fileobj is sys.stdin:
                sys.exit(0)  # the campaign is over
            if key.fileobj is server:
                connection, _ = server.accept()
                environ, files = receive(connection)
                pid = os.fork()
                if pid == 0:
                    server.close()
                    become(environ, files)
                    return
                for file in files:
                    os.close(file)
                pidfd = os.pidfd_open(pid)
                ranks[connection] = pid, pidfd
                wait.register(connection, selectors.EVENT_READ, connection)
                wait.register(pidfd, selectors.EVENT_READ, connection)
                continue
            connection = key.data
            if connection not in ranks:
                continue
            pid, pidfd = ranks[connection]
            if key.fd == pidfd:
                _, status = os.waitpid(pid, 0)
                how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
            else:
                try:
                    word = connection.recv(64)
                except ConnectionResetError:
                    word = b""
                if word:
                    os.kill(pid, int(word.split()[1]))
                    continue
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                how = ""
            wait.unregister(connection)
            wait.unregister(pidfd)
            os.close(pidfd)
            del ranks[connection]
            try:
                connection.sendall(how.encode())
            except OSError:
                pass
            connection.close()


def receive(connection):
    """One message: 4 bytes of length with three descriptors, then JSON."""
    fds = array.array("i")
    head, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * fds.itemsize))
    for _, _, data in ancillary:
        fds.frombytes(data)
    left, text = int.from_bytes(head, "big"), b""
    while len(text) < left:
        text += connection.recv(left - len(text))
    return json.loads(text), list(fds)


def become(environ, files):
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environ)
    if environ.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    run()
