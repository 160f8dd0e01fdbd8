import os
import subprocess
import sys

from limpet.sandbox.survivors import MARK, Trace, birth, end_survivors
from tests.sandbox.test_run import gone, processes_with


def start(mark: str, command: str, **environ: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sh", "-c", command.format(mark)], start_new_session=True, env={**os.environ, **environ})


def test_a_birth_is_of_one_process_alone():
    assert birth(os.getpid()) == birth(os.getpid()) != ""
    assert birth(os.getpid()) != birth(os.getppid())
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
        assert birth(ended.pid) == ""


def test_the_recorded_process_and_its_children_are_ended():
    mark = f"61{os.getpid()}1"
    with start(mark, "sleep {0} & setsid sleep {0} & sleep {0}") as process:
        trace = Trace(process.pid, birth(process.pid))
        while len(processes_with(f"sleep\0{mark}")) < 3:
            pass
        assert end_survivors(trace) >= 4
    assert gone(f"sleep\0{mark}")


def test_a_pid_that_came_again_is_left_alone():
    mark = f"62{os.getpid()}2"
    with start(mark, "exec sleep {0}") as process:
        assert end_survivors(Trace(process.pid, "some other birth")) == 0
        assert end_survivors(Trace(process.pid, "")) == 0
        assert process.poll() is None
        process.kill()


def test_the_mark_finds_what_lost_its_parents():
    mark = f"63{os.getpid()}3"
    with start(mark, "(setsid sleep {0} &) ; exit 0", **{MARK: "m1"}):
        pass
    while not processes_with(f"sleep\0{mark}"):
        pass
    assert end_survivors(Trace(0, "", "m2")) == 0
    assert end_survivors(Trace(0, "", "m1")) == 1
    assert gone(f"sleep\0{mark}")


def test_what_is_above_us_and_beside_us_is_never_signalled():
    parent = os.getppid()
    with subprocess.Popen(["sleep", "60"]) as beside:  # in our own process group
        assert end_survivors(Trace(beside.pid, birth(beside.pid))) == 0
        assert beside.poll() is None
        beside.kill()
    code = (
        "import os; from limpet.sandbox.survivors import Trace, birth, end_survivors; "
        "os.setsid(); print(end_survivors(Trace(os.getppid(), birth(os.getppid()))))"
    )
    above = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    done = subprocess.run([sys.executable, "-c", above], capture_output=True, text=True, timeout=60)
    assert done.stdout == "0\n", done.stderr
    assert os.getppid() == parent
