"""Figures, the table that shows them, and the machine they were measured on."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from typing import NamedTuple


class Figure(NamedTuple):
    """One number: `value` in `unit`. It may be at most the `goal`, and has to be at least the `floor`."""

    name: str
    what: str
    value: float
    unit: str
    goal: float | None = None
    floor: float | None = None

    @property
    def holds(self) -> bool | None:
        if self.goal is None and self.floor is None:
            return None
        return (self.goal is None or self.value <= self.goal) and (self.floor is None or self.value >= self.floor)


class Report(NamedTuple):
    title: str
    figures: list[Figure]
    notes: list[str]


def median(values: Sequence[float]) -> float:
    """The middle value; the mean of the two in the middle of an even number."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def table(report: Report) -> str:
    """The report as text: one line for each name, its figures side by side.

    Names that have no column in common with those before them begin a table of their own.
    """
    parts: list[list[Figure]] = []
    for name in dict.fromkeys(figure.name for figure in report.figures):
        row = [figure for figure in report.figures if figure.name == name]
        known = {(figure.what, figure.unit) for figure in parts[-1]} if parts else set[tuple[str, str]]()
        if known.isdisjoint((figure.what, figure.unit) for figure in row):
            parts.append([])
        parts[-1] += row
    missed = [figure for figure in report.figures if figure.holds is False]
    verdict = "goals: " + ("; ".join(f"MISSED {_said(figure)}" for figure in missed) if missed else "all hold")
    tables = "\n\n".join("\n".join(_lines(part)) for part in parts)
    return "\n".join([report.title, tables, verdict, *report.notes, machine()])


def _lines(figures: Sequence[Figure]) -> list[str]:
    names = list(dict.fromkeys(figure.name for figure in figures))
    columns = list(dict.fromkeys((figure.what, figure.unit) for figure in figures))
    cells = {(figure.name, figure.what, figure.unit): _cell(figure) for figure in figures}
    lines = [["", *(f"{what}, {unit}" if unit else what for what, unit in columns)]]
    lines += [[name, *(cells.get((name, *column), "") for column in columns)] for name in names]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    ]
    return [line.rstrip() for line in shown]


def _cell(figure: Figure) -> str:
    bounds = [f"≤ {_number(figure.goal)}"] if figure.goal is not None else []
    bounds += [f"≥ {_number(figure.floor)}"] if figure.floor is not None else []
    mark = f" ({'ok' if figure.holds else 'MISSED'} {' and '.join(bounds)})" if bounds else ""
    return _number(figure.value) + mark


def _said(figure: Figure) -> str:
    return f"{figure.name}, {figure.what}: {_number(figure.value)} {figure.unit}".rstrip()


def _number(value: float) -> str:
    if float(value).is_integer():
        return f"{int(value):,}"
    if abs(value) < 1:
        return f"{value:.3f}"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


def machine() -> str:
    """System, processor, cores, Python, in one line."""
    cores = os.cpu_count() or 1
    load = os.getloadavg()[0]
    python = f"Python {platform.python_version()}"
    return (
        f"machine: {platform.system()} {platform.machine()}, {_processor()}, {cores} cores (load {load:.0f}), {python}"
    )


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"


def as_json(report: Report, *, command: str, quick: bool) -> str:
    """The report for programs."""
    import json

    figures = [{**figure._asdict(), "holds": figure.holds} for figure in report.figures]
    content = {
        "command": command,
        "quick": quick,
        "machine": machine(),
        "python": sys.version,
        "figures": figures,
        "notes": report.notes,
    }
    return json.dumps(content, indent=1)
