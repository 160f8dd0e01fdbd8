"""`make_image`: a picture lands in the workspace, and nothing else happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.errors import LimpetError, PathRefusedError, ToolError, UpstreamError
from limpet.sandbox.run import Sandbox
from limpet.testing.context import Recorded, call, tool_context
from limpet.testing.fakes.media import png
from limpet.tools.builtin import builtin
from limpet.tools.disk import digest
from limpet.tools.make_image import make_image
from limpet.types.ports import Media


class Brush:
    """An `ImageMaker` that makes one pixel; `asked` is what of, `error` is raised instead."""

    def __init__(self, error: LimpetError | None = None) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self._error = error

    async def make_image(self, prompt: str, *, size: str = "", session: str = "") -> Media:
        self.asked.append((prompt, size, session))
        if self._error:
            raise self._error
        return Media(png(), "image/png")


def test_the_picture_is_written_after_its_intent(tmp_path: Path) -> None:
    brush, recorded = Brush(), Recorded()
    context = tool_context(tmp_path, recorded=recorded)
    result = call(make_image(brush), context, prompt="a cat", path="new/cat.png", size="1x1")
    assert (tmp_path / "new/cat.png").read_bytes() == png()
    assert result.text == f"made new/cat.png (image/png, {len(png())} bytes)"
    assert [intent.after for intent in recorded.intents] == [digest(png())]
    assert brush.asked == [("a cat", "1x1", "s1")]


def test_the_ending_follows_the_picture(tmp_path: Path) -> None:
    call(make_image(Brush()), tool_context(tmp_path), prompt="a cat", path="cat.jpg")
    assert (tmp_path / "cat.jpg.png").exists()


@pytest.mark.parametrize(("path", "error"), [("../cat.png", PathRefusedError), ("folder/", ToolError)])
def test_a_bad_place_costs_nothing(tmp_path: Path, path: str, error: type[ToolError]) -> None:
    brush = Brush()
    with pytest.raises(error):
        call(make_image(brush), tool_context(tmp_path), prompt="a cat", path=path)
    assert not brush.asked


def test_a_failure_is_told_to_the_model(tmp_path: Path) -> None:
    brush = Brush(UpstreamError("down", provider="openai"))
    with pytest.raises(ToolError, match="openai: down"):
        call(make_image(brush), tool_context(tmp_path), prompt="a cat", path="cat.png")


def test_it_is_offered_only_where_pictures_can_be_made() -> None:
    assert "make_image" not in [tool.spec.name for tool in builtin(sandbox=Sandbox())]
    names = [tool.spec.name for tool in builtin(sandbox=Sandbox(), images=Brush())]
    assert "make_image" in names
    assert "make_image" in [tool.spec.name for tool in builtin(sandbox=Sandbox(), images=Brush(), tiny=True)]
