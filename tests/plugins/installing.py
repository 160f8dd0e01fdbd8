"""Plug-ins put on the import path without an installer: their files, and the metadata that one would write."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

HELLO = Path(__file__).resolve().parents[2] / "examples" / "plugin_hello"


def install(
    folder: Path, name: str, files: Mapping[str, str], *, version: str = "1.0", tools: str = "", hooks: str = ""
) -> Path:
    """Write a distribution into `folder`; `tools` and `hooks` are values of entry points such as `module:name`."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: For a test.\n")
    entries = [
        f"[{group}]\none = {value}" for group, value in (("limpet.tools", tools), ("limpet.hooks", hooks)) if value
    ]
    (info / "entry_points.txt").write_text("\n".join(entries) + "\n")
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))
    return folder


def install_hello(folder: Path) -> Path:
    """The example as it stands in the repository."""
    source = HELLO / "src" / "limpet_plugin_hello" / "__init__.py"
    return install(
        folder,
        "limpet-plugin-hello",
        {"limpet_plugin_hello/__init__.py": source.read_text("utf-8")},
        version="1.0.0",
        tools="limpet_plugin_hello:hello",
        hooks="limpet_plugin_hello:no_goodbye",
    )


def remove(folder: Path) -> None:
    shutil.rmtree(folder)


@contextmanager
def importable(folder: Path) -> Generator[None]:
    """`folder` is on the import path while the block runs; what was imported from it is forgotten afterwards."""
    sys.path.insert(0, str(folder))
    before = set(sys.modules)
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]
        sys.path_importer_cache.pop(str(folder), None)
