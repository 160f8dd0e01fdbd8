"""`limpet plugins`, and turns with a plug-in, in the real program."""

from __future__ import annotations

from pathlib import Path

from limpet.testing.fakes.script import Call, Reply
from tests.cli.program import Ended, ask, run
from tests.plugins.installing import install, install_hello

NAME = "limpet-plugin-hello"
GREET = [Reply(calls=(Call("hello", '{"name": "Ada"}'),)), Reply(text=("greeted",))]
LOUD = "raise SystemExit('imported!')\n"


def plugins(home: Path, folder: Path, *arguments: str) -> Ended:
    return run(home, "plugins", *arguments, PYTHONPATH=str(folder))


def greet(home: Path, folder: Path) -> tuple[Ended, str]:
    """A turn in which the model greets; and what the model was told of it, with the tools it was offered."""
    seen: list[str] = []

    def script(request: object) -> Reply:
        seen.append(str(request))
        return GREET[len(seen) - 1]

    return ask(home, script, "agent", "-m", "go", PYTHONPATH=str(folder)), "\n".join(seen)


def test_nothing_is_installed(tmp_path: Path) -> None:
    assert "No plug-ins are installed" in plugins(tmp_path, tmp_path / "a", "list").out


def test_looking_and_trusting_imports_nothing(tmp_path: Path) -> None:
    folder = install(tmp_path / "a", "loud", {"loud_plugin.py": LOUD}, tools="loud_plugin:x")
    listed = plugins(tmp_path / "home", folder, "list")
    assert "1.0: tools one; not trusted, never imported" in listed.out
    shown = plugins(tmp_path / "home", folder, "info", "loud")
    assert "one = loud_plugin:x" in shown.out
    assert "sha256" in shown.out
    assert plugins(tmp_path / "home", folder, "trust", "loud").code == 0
    assert "trusted" in plugins(tmp_path / "home", folder, "list").out
    assert "imported!" not in listed.err + shown.err


def test_a_plugin_works_once_it_is_trusted_and_no_longer_when_it_is_not(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", install_hello(tmp_path / "a")
    assert "There is no tool 'hello'" in greet(home, folder)[1]
    assert plugins(home, folder, "trust", NAME).code == 0
    ended, seen = greet(home, folder)
    assert ended.code == 0
    assert "Hello, Ada!" in seen
    assert plugins(home, folder, "untrust", NAME).code == 0
    assert "There is no tool 'hello'" in greet(home, folder)[1]


def test_a_hook_refuses_calls_of_any_tool(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", install_hello(tmp_path / "a")
    plugins(home, folder, "trust", NAME)
    write = Call("write_file", '{"path": "a.txt", "content": "Goodbye"}')
    script = [Reply(calls=(write,)), Reply(text=("well",))]
    assert ask(home, script, "agent", "-m", "go", PYTHONPATH=str(folder)).code == 0
    assert not (home / "workspace" / "a.txt").exists()


def test_a_changed_plugin_is_not_loaded_and_said_so(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", install_hello(tmp_path / "a")
    plugins(home, folder, "trust", NAME)
    with open(folder / "limpet_plugin_hello" / "__init__.py", "a") as file:
        file.write(LOUD)
    ended, seen = greet(home, folder)
    assert ended.code == 0
    assert "There is no tool 'hello'" in seen
    assert "has changed since you trusted it" in ended.err + ended.out
    assert "is not loaded: it has changed" in plugins(home, folder, "list").out


def test_trust_is_on_record(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", install_hello(tmp_path / "a")
    greet(home, folder)
    plugins(home, folder, "trust", NAME)
    plugins(home, folder, "untrust", NAME)
    shown = run(home, "audit", "show").out
    assert shown.count("plugin.changed") == 2
    assert "trusted 1.0.0" in shown


def test_mistakes_are_told(tmp_path: Path) -> None:
    assert "There is no plug-in nobody" in plugins(tmp_path, tmp_path, "trust", "nobody").err
    assert "nobody is not trusted" in plugins(tmp_path, tmp_path, "untrust", "nobody").err
