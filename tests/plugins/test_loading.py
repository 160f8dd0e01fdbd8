"""Only what is trusted, exactly as it was trusted, is loaded; and whatever fails is left out alone."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import structs

from limpet.config.schema import PluginsSettings, TrustedPlugin
from limpet.plugins.installed import find
from limpet.plugins.loaded import Loaded
from limpet.plugins.loading import load
from limpet.sandbox.run import Sandbox
from limpet.tools.builtin import builtin
from limpet.tools.profiles import is_own
from tests.plugins.installing import importable, install, install_hello, remove

HEAD = "from limpet import hook, text_result, tool\n"
TOOL = '''
@tool()
async def {name}(context):
    """Do something."""
    return text_result("done")
'''


def trusting(*names: str) -> PluginsSettings:
    """Trust in what is installed now."""
    found = {name: find(name) for name in names}
    return PluginsSettings(
        trusted={name: TrustedPlugin(one.version, one.digest) for name, one in found.items() if one is not None}
    )


def loaded(settings: PluginsSettings) -> tuple[Loaded, str]:
    warnings: list[str] = []
    found = load(settings, is_taken=is_own, warn=warnings.append)
    return found, "\n".join(warnings)


def test_a_trusted_plugin_gives_its_tools_and_hooks(tmp_path: Path) -> None:
    with importable(install_hello(tmp_path / "a")):
        found, warnings = loaded(trusting("limpet-plugin-hello"))
    assert not warnings
    assert [tool.name for tool in found.tools] == ["hello"]
    assert [hook.name for hook in found.hooks] == ["limpet-plugin-hello: no_goodbye"]


def test_what_is_not_trusted_is_never_imported(tmp_path: Path) -> None:
    with importable(install_hello(tmp_path / "a")):
        assert loaded(PluginsSettings()) == (Loaded(), "")
        assert "limpet_plugin_hello" not in sys.modules


def test_a_plugin_whose_files_changed_is_not_imported_and_says_so(tmp_path: Path) -> None:
    folder = install(tmp_path / "a", "changing", {"changing.py": HEAD + TOOL.format(name="x")}, tools="changing:x")
    with importable(folder):
        settings = trusting("changing")
        (folder / "changing.py").write_text("raise SystemExit\n")
        found, warnings = loaded(settings)
        assert found == Loaded()
        assert "changing is not loaded: it has changed since you trusted it (other files)" in warnings
        assert "changing" not in sys.modules


def test_a_plugin_of_another_version_is_not_loaded(tmp_path: Path) -> None:
    with importable(install_hello(tmp_path / "a")):
        known = trusting("limpet-plugin-hello").trusted["limpet-plugin-hello"]
        older = PluginsSettings(trusted={"limpet-plugin-hello": structs.replace(known, version="0.9")})
        found, warnings = loaded(older)
    assert found == Loaded()
    assert "version 1.0.0 instead of 0.9" in warnings


def test_a_plugin_that_was_removed_is_told(tmp_path: Path) -> None:
    with importable(install_hello(tmp_path / "a")):
        settings = trusting("limpet-plugin-hello")
        remove(tmp_path / "a")
        found, warnings = loaded(settings)
    assert found == Loaded()
    assert "trusted but not installed" in warnings


def test_plugins_that_fail_to_load_are_left_out_and_the_others_work(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    install(folder, "bad-a", {"bad_a.py": "1 / 0\n"}, tools="bad_a:x")
    install(folder, "bad-b", {"bad_b.py": "raise SystemExit(3)\n"}, tools="bad_b:x")
    install(folder, "bad-c", {"bad_c.py": "x = 1\n"}, tools="bad_c:x")
    install(folder, "bad-d", {"bad_d.py": ""}, tools="bad_d:missing")
    install(folder, "good", {"good.py": HEAD + TOOL.format(name="works")}, tools="good:works")
    with importable(folder):
        found, warnings = loaded(trusting("bad-a", "bad-b", "bad-c", "bad-d", "good"))
    assert [tool.name for tool in found.tools] == ["works"]
    assert "bad-a failed to load bad_a:x: ZeroDivisionError" in warnings
    assert "bad-b failed to load bad_b:x: SystemExit" in warnings
    assert "bad-c offers bad_c:x, which was not made with @tool" in warnings
    assert "bad-d failed to load" in warnings


def test_names_of_others_are_not_taken(tmp_path: Path) -> None:
    names = ("exec", "Read_File", "mcp_x_y", "memory_save", "browser", "mine")
    code = HEAD + "".join(TOOL.format(name=name) for name in names) + f"every = [{', '.join(names)}]\n"
    folder = install(tmp_path / "a", "shadow", {"shadow.py": code}, tools="shadow:every")
    install(folder, "twin", {"twin.py": HEAD + TOOL.format(name="mine")}, tools="twin:mine")
    with importable(folder):
        found, warnings = loaded(trusting("shadow", "twin"))
    assert [tool.name for tool in found.tools] == ["mine"]
    assert warnings.count("Limpet's own") == 5
    assert "twin has a tool that is left out: another plug-in has a tool mine already" in warnings


def test_tools_that_cannot_be_described_are_left_out(tmp_path: Path) -> None:
    code = (
        HEAD
        + "@tool()\nasync def silent(context):\n    return ''\n"
        + "@tool()\nasync def odd(context, x: 'Unknown'):\n    'Odd.'\n    return ''\n"
        + "every = (silent, odd)\n"
    )
    folder = install(tmp_path / "a", "odd", {"odd_one.py": code}, tools="odd_one:every")
    with importable(folder):
        found, warnings = loaded(trusting("odd"))
    assert not found.tools
    assert "silent has no docstring" in warnings
    assert "odd cannot be described: NameError" in warnings


def test_the_names_of_built_in_tools_are_all_kept() -> None:
    assert all(is_own(tool.spec.name) for tool in builtin(sandbox=Sandbox()))
