import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from limpet.errors import SandboxError
from limpet.sandbox import cgroup
from limpet.sandbox.bubblewrap import search_path
from limpet.sandbox.limits import Limits
from limpet.sandbox.network import Network
from limpet.sandbox.run import Finished, Job, Sandbox

REPORT = Sandbox().report
PLACES = [
    pytest.param("sandbox", marks=pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}")),
    "host",
]
needs_sandbox = pytest.mark.skipif(REPORT.kind == "none", reason=f"no sandbox: {REPORT.reason}")


def job(folder, command, place, **options):
    env = {"PATH": search_path(), "HOME": str(folder), "LANG": "C.UTF-8"}
    return Job(command=command, workspace=str(folder), folder=str(folder), env=env, place=place, **options)


def run(one: Job, *, groups: bool = True) -> tuple[Finished, str]:
    async def go():
        sandbox, out = Sandbox(groups=groups), bytearray()
        try:
            finished = await sandbox.run(one, out.extend)
        finally:
            await sandbox.close()
        return finished, out.decode()

    return asyncio.run(asyncio.wait_for(go(), 30))


def processes_with(mark: str) -> list[str]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes()
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in line and state not in "ZX":
                found.append(name)
    return found


def soon(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def gone(mark: str) -> bool:
    """Whether the processes end soon; a killed one needs a moment to leave."""
    return soon(lambda: not processes_with(mark))


@pytest.mark.parametrize("place", PLACES)
def test_output_exit_code_and_folder(tmp_path, place):
    finished, out = run(job(tmp_path, "pwd; echo err >&2; exit 7", place))
    assert (finished.exit_code, out) == (7, f"{tmp_path}\nerr\n")


@pytest.mark.parametrize("place", PLACES)
def test_variables_stand_in_no_arguments(tmp_path, place):
    one = job(tmp_path, "echo $WORD; tr '\\0' ' ' < /proc/1/cmdline; env", place)
    one = structs.replace(one, env={**one.env, "WORD": "ch4ng3d"})
    seen: list[str] = []

    async def go():
        async with Sandbox() as sandbox:
            command = await sandbox.start(structs.replace(one, command="sleep 5"), lambda _: None)
            seen.extend(Path(f"/proc/{command.pid}/cmdline").read_text().split("\0"))
            await command.kill()

    asyncio.run(asyncio.wait_for(go(), 30))
    assert not any("ch4ng3d" in word for word in seen)
    _, out = run(one)
    assert out.splitlines()[0] == "ch4ng3d"
    names = {line.partition("=")[0] for line in out.splitlines()[1:] if "=" in line}
    assert not any(name.startswith(("LIMPET", "PYTHON", "PYTEST")) for name in names)


@needs_sandbox
def test_an_open_network_is_that_of_the_machine(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = f"python3 -c \"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 3)\""
        assert run(job(tmp_path, command, "sandbox"))[0].exit_code == 1
        assert run(job(tmp_path, command, "sandbox", network=Network("open")))[0].exit_code == 0


@pytest.mark.parametrize("place", PLACES)
def test_end_by_a_signal(tmp_path, place):
    assert run(job(tmp_path, "kill -9 $$", place))[0].exit_code == 137


@pytest.mark.parametrize("place", PLACES)
def test_nothing_to_read_and_no_terminal(tmp_path, place):
    finished, out = run(job(tmp_path, "cat; tty; (: < /dev/tty) 2>/dev/null || echo none", place))
    assert finished.exit_code == 0
    assert out == "not a tty\nnone\n"


@pytest.mark.parametrize("place", PLACES)
def test_signals_are_as_programs_expect(tmp_path, place):
    code = "import signal; print(signal.getsignal(signal.SIGINT) is not signal.SIG_IGN)"
    assert run(job(tmp_path, f'yes | head -n 1; python3 -c "{code}"', place))[1] == "y\nTrue\n"


@pytest.mark.parametrize("place", PLACES)
def test_timeout_kills_the_whole_tree(tmp_path, place):
    mark = f"31{os.getpid()}1"
    command = f"echo begun; setsid sleep {mark} & (trap '' TERM INT; sleep {mark}) & sleep {mark}"
    finished, out = run(job(tmp_path, command, place, timeout=0.3))
    assert (finished.timed_out, finished.exit_code, out) == (True, None, "begun\n")
    assert processes_with(f"sleep\0{mark}") == []


@pytest.mark.parametrize("place", PLACES)
def test_cancelling_kills_the_whole_tree(tmp_path, place):
    mark = f"32{os.getpid()}2"

    async def go():
        sandbox, begun = Sandbox(), asyncio.Event()
        running = asyncio.create_task(
            sandbox.run(job(tmp_path, f"sleep {mark} & echo; sleep {mark}", place), lambda _: begun.set())
        )
        await asyncio.wait_for(begun.wait(), 20)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert processes_with(f"sleep\0{mark}") == []
        await sandbox.close()

    asyncio.run(go())


@pytest.mark.parametrize("place", PLACES)
def test_background_children_live_until_the_end_of_the_agent(tmp_path, place):
    mark = f"33{os.getpid()}3"

    async def go():
        sandbox, out = Sandbox(), bytearray()
        finished = await sandbox.run(job(tmp_path, f"sleep {mark} & echo done; exit 3", place), out.extend)
        assert (finished.exit_code, out) == (3, b"done\n")
        assert [child.command for child in finished.background] == [f"sleep {mark}"]
        assert soon(lambda: len(processes_with(f"sleep\0{mark}")) == 1)
        await sandbox.close()
        assert processes_with(f"sleep\0{mark}") == []

    asyncio.run(go())


@pytest.mark.parametrize("place", PLACES)
def test_background_children_that_keep_writing_do_not_block(tmp_path, place):
    async def go():
        sandbox, out = Sandbox(), bytearray()
        command = "(yes | head -c 1000000; echo over > end) & true"
        await sandbox.run(job(tmp_path, command, place), out.extend)
        for _ in range(2_000):
            if (tmp_path / "end").exists():
                break
            await asyncio.sleep(0.01)
        await sandbox.close()
        assert (tmp_path / "end").exists()

    asyncio.run(go())


@pytest.mark.parametrize("place", PLACES)
def test_endless_output_of_a_background_child_holds_nothing_up(tmp_path, place):
    finished, out = run(job(tmp_path, "yes & sleep 0.05; exit 4", place))
    assert finished.exit_code == 4
    assert [child.command for child in finished.background] == ["yes"]
    assert out.startswith("y\n")


@pytest.mark.parametrize("place", PLACES)
def test_no_command_outlives_its_killed_agent(tmp_path, place):
    mark = f"34{os.getpid()}4"
    agent = (
        "import asyncio, sys\n"
        "from limpet.sandbox.run import Job, Sandbox\n"
        f"job = Job(command='setsid sleep {mark} & echo; sleep {mark}', workspace={str(tmp_path)!r}, "
        f"folder={str(tmp_path)!r}, env={{'PATH': '/usr/bin:/bin'}}, place={place!r})\n"
        "asyncio.run(Sandbox().run(job, lambda _: print('begun', flush=True)))\n"
    )
    with subprocess.Popen([sys.executable, "-c", agent], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"begun\n"
            assert soon(lambda: len(processes_with(f"sleep\0{mark}")) == 2)
        finally:
            process.send_signal(signal.SIGKILL)
    assert gone(f"sleep\0{mark}")


@pytest.mark.parametrize("place", PLACES)
def test_own_process_group_is_never_signalled(tmp_path, place):
    run(job(tmp_path, "kill 0; sleep 5", place, timeout=5))
    run(job(tmp_path, "kill -TERM -$$; sleep 5", place, timeout=5))


@pytest.mark.parametrize("groups", [True, False])
@pytest.mark.parametrize("place", PLACES)
def test_memory_is_limited(tmp_path, place, groups):
    command = "python3 -c 'import time; x = b\"x\" * 150_000_000; time.sleep(9)' & wait"
    finished, _ = run(job(tmp_path, command, place, limits=Limits(memory=60_000_000)), groups=groups)
    assert finished.limit == "memory"


@pytest.mark.parametrize("place", PLACES)
def test_processes_are_limited(tmp_path, place):
    command = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 9 & done; wait"
    assert run(job(tmp_path, command, place, limits=Limits(processes=8)))[0].limit == "processes"


@pytest.mark.parametrize("place", PLACES)
def test_files_are_limited(tmp_path, place):
    finished, _ = run(job(tmp_path, "head -c 200000 /dev/zero > big", place, limits=Limits(file_size=100_000)))
    assert finished.exit_code != 0
    assert (tmp_path / "big").stat().st_size == 100_000


@needs_sandbox
def test_too_many_processes_end_the_command(tmp_path):
    # Not a fork bomb: where only a watch limits them, that would load the machine for a moment.
    many = "i=0; while [ $i -lt 120 ]; do sleep 20 & i=$((i+1)); done; sleep 20"
    finished, _ = run(job(tmp_path, many, "sandbox", limits=Limits(processes=50)))
    assert finished.limit == "processes"


@needs_sandbox
def test_only_the_workspace_is_seen_and_written(tmp_path):
    space = tmp_path / "w"
    space.mkdir()
    (tmp_path / "secret").write_text("SECRET")
    command = f"cat {tmp_path}/secret; ls {tmp_path}; touch /usr/x /etc/x; touch ok; cat {Path.home()}/.bashrc"
    _, out = run(job(space, command, "sandbox"))
    assert "SECRET" not in out
    assert (space / "ok").exists()
    assert out.count("Read-only file system") == 2


@needs_sandbox
def test_state_and_hidden_folders_are_empty_and_cannot_be_written(tmp_path):
    (tmp_path / ".limpet").mkdir()
    (tmp_path / ".limpet" / "limpet.db").write_text("SECRET")
    _, out = run(job(tmp_path, "ls .limpet; echo x > .limpet/y", "sandbox", hidden=(f"{tmp_path}/.limpet",)))
    assert "SECRET" not in out
    assert "limpet.db" not in out
    assert os.listdir(tmp_path / ".limpet") == ["limpet.db"]


@needs_sandbox
def test_no_network_and_no_privileges(tmp_path):
    code = "import socket; socket.create_connection(('127.0.0.1', 9), 2)"
    _, out = run(job(tmp_path, f'python3 -c "{code}"; grep CapEff /proc/self/status; mount -t tmpfs x /mnt', "sandbox"))
    assert "refused" in out or "unreachable" in out
    assert "CapEff:\t0000000000000000" in out


def test_control_groups_are_removed(tmp_path):
    found = cgroup.parents()
    if found is None:
        pytest.skip("no control group can be made here")
    before = {name for folder in found.folders for name in os.listdir(folder)}
    run(job(tmp_path, "true", "host"))
    names = {name for folder in found.folders for name in os.listdir(folder)} - before
    assert not any(name.startswith(f"limpet-{os.getpid()}-") for name in names)


def test_without_a_sandbox_it_is_refused(tmp_path):
    async def go():
        await Sandbox(enabled=False).run(job(tmp_path, "true", "sandbox"), lambda _: None)

    with pytest.raises(SandboxError, match="switched off"):
        asyncio.run(go())


@needs_sandbox
@pytest.mark.parametrize("workspace", ["/", "/usr", "/tmp"])
def test_a_workspace_that_holds_the_system_is_refused(workspace):
    with pytest.raises(SandboxError, match="parts of the system"):
        run(job(workspace, "true", "sandbox"))


@needs_sandbox
def test_a_home_as_workspace_keeps_its_secrets(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text("SECRET")
    (tmp_path / ".netrc").write_text("SECRET")
    _, out = run(job(tmp_path, "cat .ssh/id_rsa .netrc", "sandbox"))
    assert "SECRET" not in out


@needs_sandbox
def test_what_bubblewrap_says_is_passed_on(tmp_path):
    with pytest.raises(SandboxError) as caught:
        run(job(tmp_path / "missing", "true", "sandbox"))
    assert "missing" in caught.value.hint


def test_many_at_once_give_back_everything(tmp_path):
    async def go():
        sandbox = Sandbox()
        before = len(os.listdir("/proc/self/fd"))
        await asyncio.gather(*(sandbox.run(job(tmp_path, "true", "host"), lambda _: None) for _ in range(8)))
        await sandbox.close()
        await asyncio.sleep(0)
        assert len(os.listdir("/proc/self/fd")) <= before + 1
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(go())


def test_report_names_limits():
    assert any(line.startswith("memory: ") for line in REPORT.limits)
    assert REPORT.kind == "none" or REPORT.version
