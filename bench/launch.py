"""`python -I -S launch.py COMMAND…`: run it, and print what it cost.

A process of its own, because Linux counts the memory of whoever starts a command as that command's, and this one is
as small as a Python can be. Prints exit code, CPU seconds, wall seconds, bytes of peak memory.
"""

import os
import sys
import time

null = os.open(os.devnull, os.O_RDWR)
began = time.perf_counter()
pid = os.posix_spawn(
    sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, stream) for stream in (0, 1, 2)]
)
_, status, used = os.wait4(pid, 0)
wall = time.perf_counter() - began
peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, wall, peak)
