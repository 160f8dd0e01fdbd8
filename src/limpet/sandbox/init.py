"""The small init that every command runs under, as `python -I -S init.py …`: standard library only, few imports.

It starts the command, says on the status pipe how the command ended as soon as it did, and stays until the last
background child has ended. It kills everything when the life pipe closes: that is how the agent stops a command,
and what happens when the agent dies. In a sandbox it is process 1, so its own end is the end of all others.

    init.py STATUS_FD LIFE_FD PLACE MEMORY PROCESSES FILE_SIZE TERMINAL COMMAND [PORT SOCKET]
                                                                                   (sizes in bytes, 0 = no limit)

TERMINAL is `-`, or `FD:ROWS:COLUMNS` for a command that gets a terminal of its own: it is opened here, inside the
sandbox, and the end for the agent is sent over the socket FD. With a PORT, connections to it on the sandbox's loopback
are forwarded to the Unix socket SOCKET (`door.py` beside it).

Lines on the status pipe: `exit CODE`, `left PID COMMAND` for each child still running, `ready`; `limit NAME` before
everything is killed because a limit was passed. CODE is 128 + signal for a command that a signal ended.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from signal import SIG_DFL, SIGKILL, SIGSTOP, signal
else:
    from _signal import SIG_DFL, SIGKILL, SIGSTOP, signal  # `signal` imports `enum`, which is half of the start

PAGE = os.sysconf("SC_PAGE_SIZE")
OPEN_FILES = 4096
ADDRESS_FACTOR = 8
"""Address space allowed for each byte of memory: programs reserve far more than they use."""
SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` of `prctl(2)`."""


def quietly(function: Callable[..., object], *arguments: object) -> None:
    """Call, and never mind when the system refuses: `contextlib` would cost a quarter of the start."""
    try:
        function(*arguments)
    except (OSError, ValueError):
        return


def processes(*, alone: bool) -> dict[int, int]:
    """Pids of the command's processes with their memory in bytes, zombies left out. `alone`: all but process 1."""
    me = os.getpid()
    found: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != me:
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] not in (b"Z", b"X"):
                found[int(name)] = (int(fields[1]), int(fields[21]) * PAGE)
    if alone:
        return {pid: memory for pid, (_, memory) in found.items()}
    ours = {me}
    grown = True
    while grown:
        more = {pid for pid, (parent, _) in found.items() if parent in ours} - ours
        ours |= more
        grown = bool(more)
    return {pid: found[pid][1] for pid in ours if pid != me}


def kill_all(*, alone: bool) -> None:
    """End every process of the command."""
    if alone:
        quietly(os.kill, -1, SIGKILL)
        return
    for signal_number in (SIGSTOP, SIGKILL):  # stopped first, or a fork bomb outruns the list
        for _ in range(20):
            victims = list(processes(alone=False))
            for pid in victims:
                quietly(os.kill, pid, signal_number)
            if signal_number == SIGSTOP or not victims:
                break


def open_terminal(wanted: str) -> int:
    """Open the terminal that is wanted and send the agent its end; gives the command's end, -1 without one."""
    if wanted == "-":
        return -1
    import fcntl
    import socket
    import termios

    fd, rows, columns = (int(part) for part in wanted.split(":"))
    agents, commands = os.openpty()
    size = b"".join(number.to_bytes(2, sys.byteorder) for number in (rows, columns, 0, 0))
    fcntl.ioctl(commands, termios.TIOCSWINSZ, size)
    with socket.socket(fileno=fd) as channel:
        socket.send_fds(channel, [b"t"], [agents])
    os.close(agents)
    return commands


def start(command: str, *, memory: int, file_size: int, terminal: int) -> int:
    """Fork and run the shell; never returns in the child."""
    child = os.fork()
    if child:
        return child
    try:
        if terminal >= 0:
            os.login_tty(terminal)  # a session of its own, of which this is the controlling terminal
        else:
            os.setsid()
        quietly(os.nice, 5)  # the agent stays quick whatever the command does
        for number in (13, 25):  # SIGPIPE and SIGXFSZ, which Python ignores and children would inherit
            signal(number, SIG_DFL)
        restrict(memory, file_size)
        os.execv("/bin/sh", ["sh", "-c", command])
    finally:
        os.write(2, b"limpet: the shell could not be started\n")
        os._exit(127)


def restrict(memory: int, file_size: int) -> None:
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # when memory runs out, the command goes first and not the agent
    except OSError:
        pass
    import resource

    wanted = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, OPEN_FILES)]
    if memory:
        wanted.append((resource.RLIMIT_AS, memory * ADDRESS_FACTOR))
    if file_size:
        wanted.append((resource.RLIMIT_FSIZE, file_size))
    for kind, value in wanted:
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        quietly(resource.setrlimit, kind, (value, value))


def watch(life: int, status: int, *, alone: bool, memory: int, count: int) -> None:
    """Until the life pipe closes: look after the tree; then kill it."""
    from select import POLLERR, POLLHUP, POLLIN, poll

    poller = poll()
    poller.register(life, POLLIN | POLLHUP | POLLERR)
    procfs = os.path.isdir("/proc/self")
    tick = 20.0
    while not poller.poll(int(tick)):
        tick = min(tick * 1.4, 200 if alone else 500)  # often at first: a fork bomb needs no time
        if not procfs:
            continue
        if alone and count and sum(name.isdigit() for name in os.listdir("/proc")) > 2 * count:
            os.write(status, b"limit processes\n")  # a bomb: no time to read about each of them
            break
        tree = processes(alone=alone)
        passed = "memory" if memory and sum(tree.values()) > memory else ""
        tick = 20.0 if count and len(tree) > count // 2 else tick
        passed = passed or ("processes" if count and len(tree) > count else "")
        if passed:
            os.write(status, f"limit {passed}\n".encode())
            break
    kill_all(alone=alone)
    if alone:
        os._exit(137)


def left_running(*, alone: bool) -> str:
    lines: list[str] = []
    for pid in sorted(processes(alone=alone)):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read(300).replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except OSError:
            continue
        lines.append(f"left {pid} {' '.join(line.split())}\n")
    return "".join(lines)


def report(status: int, code: int, *, command: str, alone: bool) -> None:
    number = 128 + os.WTERMSIG(code) if os.WIFSIGNALED(code) else os.waitstatus_to_exitcode(code)
    os.write(status, f"exit {number}\n".encode())
    lines = ""
    if os.path.isdir("/proc/self"):
        lines, looks = left_running(alone=alone), 0
        # Members of a pipe end a moment after the last one, and a program begins as a copy of the shell.
        while lines and (looks < 1 or (looks < 10 and " ".join(command.split()) in lines)):
            time.sleep(0.02)
            lines, looks = left_running(alone=alone), looks + 1
    os.write(status, (lines + "ready\n").encode("utf-8", "replace"))


def open_door(port: int, path: str) -> Callable[[], None]:
    """Listen, before the command can want to connect; what forwards, to be started when it has been forked."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    door = __import__("door")
    listener = door.listen(port)
    return lambda: door.serve(listener, path)


def main() -> None:
    status, life = int(sys.argv[1]), int(sys.argv[2])
    alone = sys.argv[3] == "sandbox"
    memory, count, file_size = (int(value) for value in sys.argv[4:7])
    if not alone and sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    for fd in (status, life):
        os.set_inheritable(fd, False)
    forward = open_door(int(sys.argv[9]), sys.argv[10]) if len(sys.argv) > 10 else None
    terminal = open_terminal(sys.argv[7])
    child = start(sys.argv[8], memory=memory, file_size=file_size, terminal=terminal)
    if terminal >= 0:
        os.close(terminal)
    nothing = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    start_new_thread(lambda: watch(life, status, alone=alone, memory=memory, count=count), ())
    if forward:
        start_new_thread(forward, ())
    while True:
        try:
            pid, code = os.wait()
        except ChildProcessError:
            break
        if pid == child:
            report(status, code, command=sys.argv[8], alone=alone)
    os._exit(0)


if __name__ == "__main__":
    main()
