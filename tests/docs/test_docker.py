"""The Dockerfile and the compose example, linted: there is no Docker where the tests run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

from limpet.config import check
from limpet.config.load import variable_key

ROOT = Path(__file__).resolve().parents[2]
BUILDS = {"ARG", "FROM", "WORKDIR", "COPY", "RUN"}
RUNS = {"ENV", "VOLUME", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"}


def instructions() -> list[tuple[str, str]]:
    """Each instruction with its arguments, continued lines joined."""
    lines = [line for line in (ROOT / "Dockerfile").read_text("utf-8").splitlines() if not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"])


def test_the_image_runs_as_nobody_in_particular_and_says_how_it_is() -> None:
    found = instructions()
    names = [name for name, _ in found]
    assert set(names) <= BUILDS | RUNS
    assert dict(found)["USER"] not in ("root", "0", "0:0")
    assert "/readyz" in dict(found)["HEALTHCHECK"]
    assert "chmod 1777 /data" in " ".join(rest for _, rest in found), "any uid may write there"
    assert names.count("FROM") == 2, "what builds does not stay in the image"


def test_what_is_copied_is_there_and_let_through() -> None:
    let = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    for name, rest in instructions():
        for source in rest.split()[:-1] if name == "COPY" and "--from" not in rest else []:
            assert (ROOT / source).exists()
            assert f"!{source}" in let


def test_extras_that_are_named_exist() -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8") + (ROOT / "examples/docker/compose.yaml").read_text("utf-8")
    named = re.findall(r"EXTRAS[=:] ?([\w,-]+)", text)
    assert named
    assert {one for group in named for one in group.split(",")} <= extras()


def test_the_compose_example_is_closed_to_others_and_keeps_the_home() -> None:
    found = yaml.safe_load((ROOT / "examples/docker/compose.yaml").read_text("utf-8"))
    service = found["services"]["limpet"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["volumes"] == ["limpet:/data"]
    assert "limpet" in found["volumes"]
    assert "no-new-privileges:true" in service["security_opt"]
    settings = [name for name in service["environment"] if name.startswith("LIMPET_")]
    assert all(check.type_of(variable_key(name)) is not None for name in settings)
