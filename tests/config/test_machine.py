"""Facts about the machine."""

from __future__ import annotations

from pathlib import Path

from limpet.config.machine import file_system_of, is_network, start_warnings, this_machine


def test_the_file_system_of_a_path_is_known(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"2 1 0:5 / {tmp_path}/my\\040share rw - nfs4 server:/x rw\n"
        f"3 1 0:6 / {tmp_path}/my\\040share/in rw - tmpfs none rw\n"
        "broken line\n"
    )
    kinds = [
        file_system_of(tmp_path / name, mounts=str(mounts)) for name in ("my share/a", "my share/in/b", "my sharex", "")
    ]
    assert kinds == ["nfs4", "tmpfs", "ext4", "ext4"]
    assert file_system_of(tmp_path, mounts=str(tmp_path / "nothing")) == ""


def test_network_file_systems_are_known() -> None:
    assert all(map(is_network, ("nfs4", "cifs", "9p", "fuse.sshfs")))
    assert not any(map(is_network, ("ext4", "btrfs", "overlay", "tmpfs", "fuse.fuse-overlayfs", "")))


def test_markers_of_the_environment_are_seen() -> None:
    machine = this_machine({"container": "podman", "PREFIX": "/data/data/com.termux/files/usr"})
    assert machine.container
    assert machine.termux
    assert machine.system
    assert machine.python.startswith("3.")


def test_a_start_warns_with_the_remedy(tmp_path: Path) -> None:
    (warning,) = start_warnings(tmp_path, {"PREFIX": "/data/data/com.termux/files/usr"})
    assert "use Linux" in warning
    assert start_warnings(tmp_path, {}) == []
