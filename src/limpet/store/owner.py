"""Who owns a session: processes and their locks.

Each process that takes sessions holds a `flock` on `run/<owner>.lock` for its life. An owner is dead exactly when
that lock can be taken: no timeout to wait out, no clock to trust (measured: free 5 ms after SIGKILL, held under
SIGSTOP). The descriptor is close-on-exec and helper processes are started by exec, so none of them keeps it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets

from limpet.errors import StoreError


class Owner:
    """This process as an owner of sessions. `name` is what `sessions.owner` says.

    `held` are the sessions that a task of this process works on: two tasks of one process exclude each other as two
    processes do. `answering` are the inbox rows whose command one of them runs.
    """

    def __init__(self, run: str) -> None:
        """Take the lock. `run` is the directory for it, made if missing. Raises `StoreError`."""
        self.run = run
        self.held: set[str] = set()
        self.answering: set[int] = set()
        self.name = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._path = os.path.join(run, f"{self.name}.lock")
        hidden = os.path.join(run, f".{self.name}.new")
        try:
            os.makedirs(run, mode=0o700, exist_ok=True)
            self._fd = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(hidden, self._path)  # it appears locked, never unlocked
        except OSError as error:
            raise StoreError(f"Cannot write to {run}: {error.strerror}.") from error

    def alive(self, name: str) -> bool:
        """Whether the owner called `name` still lives. The lock file of a dead one is removed."""
        if name == self.name:
            return True
        path = os.path.join(self.run, f"{name}.lock")
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            for leftover in (path, path.removesuffix(".lock") + ".sock"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(leftover)
            return False
        finally:
            os.close(fd)

    def others(self) -> tuple[str, ...]:
        """Names of the other living owners of this home."""
        names = (name.removesuffix(".lock") for name in os.listdir(self.run) if name.endswith(".lock"))
        return tuple(name for name in sorted(names) if name != self.name and self.alive(name))

    def close(self) -> None:
        """Give the lock back: from here on whoever looks finds us dead."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        os.close(self._fd)
