"""Each measurement runs, and what can be counted keeps its goal. Times are not looked at: the machine may be busy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]


class Figure(Struct):
    name: str
    what: str
    value: float
    unit: str
    goal: float | None
    holds: bool | None


class Report(Struct):
    command: str
    machine: str
    figures: list[Figure]


def bench(command: str, file: Path) -> tuple[Report, str]:
    """The report of a quick run, and the table it printed."""
    environ = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-m", "bench", command, "--quick", "--json", str(file)],
        cwd=ROOT, env=environ, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(file.read_bytes(), type=Report), done.stdout


def test_start_measures_every_command_against_import_asyncio(tmp_path: Path) -> None:
    report, table = bench("start", tmp_path / "report.json")
    assert report.machine in table
    assert {figure.name for figure in report.figures if figure.goal is not None} == {
        "limpet --version",
        "limpet agent -m",
        "limpet agent -m, new home",
    }
    assert all(figure.value > 0 for figure in report.figures)


def test_a_turn_without_tools_is_four_write_groups(tmp_path: Path) -> None:
    report, _ = bench("turn", tmp_path / "report.json")
    groups = {figure.name: figure.value for figure in report.figures if figure.what == "write groups"}
    assert groups["plain turn, 1 at once"] == 4
    assert groups["turn with one tool, 1 at once"] == 8


def test_history_measures_each_length_warm_and_cold(tmp_path: Path) -> None:
    report, _ = bench("history", tmp_path / "report.json")
    sizes = [figure.value for figure in report.figures if figure.what == "body"]
    assert sizes == sorted(sizes)
    assert all(figure.value > 0 for figure in report.figures if figure.what.startswith("cold"))


def test_undo_measures_each_step_of_a_turn(tmp_path: Path) -> None:
    report, _ = bench("undo", tmp_path / "report.json")
    assert [figure.name for figure in report.figures if figure.what == "CPU"] == [
        "before the first command ever",
        "before the first command of a turn",
        "at the end of a turn with commands",
        "a file tool",
    ]


def test_the_sandbox_is_measured_against_a_bare_shell(tmp_path: Path) -> None:
    report, _ = bench("sandbox", tmp_path / "report.json")
    assert [figure.name for figure in report.figures if figure.what == "time"][:1] == ["sh, nothing around it"]
    assert all(figure.goal == 40 for figure in report.figures if figure.what == "added" and "sandbox" in figure.name)


def test_calls_of_servers_are_measured_against_the_sdk_s(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    report, _ = bench("mcp", tmp_path / "report.json")
    assert [figure.goal for figure in report.figures if figure.what == "added"] == [3, 3]
    assert {figure.what for figure in report.figures} >= {"closing", "idle CPU"}


def test_sizes_keep_their_goals(tmp_path: Path) -> None:
    report, _ = bench("size", tmp_path / "report.json")
    assert [figure.holds for figure in report.figures if figure.goal is not None] == [True] * 5


def test_one_more_entry_is_one_fold_at_any_length(tmp_path: Path) -> None:
    report, _ = bench("project", tmp_path / "report.json")
    assert {figure.value for figure in report.figures if figure.what == "folds"} == {1}


def test_every_change_of_a_prefix_is_explained_and_ours_costs_least(tmp_path: Path) -> None:
    report, _ = bench("cache", tmp_path / "report.json")
    assert {figure.value for figure in report.figures if figure.what == "unexplained"} == {0}
    costs = {figure.name: figure.value for figure in report.figures if (figure.what, figure.unit) == ("Sonnet 5", "x")}
    assert costs["no marks"] == 1
    assert all(costs["Limpet"] < cost for name, cost in costs.items() if not name.startswith("Limpet"))


def test_a_look_at_the_schedule_is_measured_against_a_gateway_without_jobs(tmp_path: Path) -> None:
    report, _ = bench("schedule", tmp_path / "report.json")
    assert {figure.name for figure in report.figures} == {"no jobs", "500 jobs"}
    assert {figure.what for figure in report.figures if figure.goal is not None} == {
        "more", "next due", "due now", "next end",
    }  # fmt: skip


def test_requests_to_the_api_are_measured_against_the_inbox(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    report, _ = bench("api", tmp_path / "report.json")
    assert {figure.name for figure in report.figures if figure.goal is not None} == {
        "chat completions", "chat completions, streamed", "messages", "responses",
    }  # fmt: skip
