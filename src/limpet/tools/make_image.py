"""`make_image`: a picture made by the model for images, written into the workspace."""

from __future__ import annotations

from typing import Annotated

from limpet.errors import ModelError, ToolError, UserError
from limpet.toolkit.schema import FunctionTool, tool
from limpet.tools.disk import replace
from limpet.tools.paths import Root, read_bytes
from limpet.types.ports import ImageMaker, ToolContext
from limpet.types.tool import Details, ToolResult, text_result

_ENDINGS = {
    "image/png": (".png",),
    "image/jpeg": (".jpg", ".jpeg"),
    "image/webp": (".webp",),
    "image/gif": (".gif",),
}


def make_image(images: ImageMaker) -> FunctionTool:
    """The tool over what makes pictures."""

    @tool(effect="file", writes=("path",), brief="Make a picture.", rare=True)
    async def make_image(
        context: ToolContext,
        prompt: Annotated[str, "what the picture shows, in detail"],
        path: Annotated[str, "where to write it, such as pictures/cat.png"],
        size: Annotated[str, "WIDTHxHEIGHT; empty: the usual one"] = "",
    ) -> ToolResult:
        """Make a picture from a description and write it to a file. It costs money: make one only when asked for."""
        with Root(context.workspace, veil=context.veil) as root:
            if root.target(path).kind == "folder" or path.endswith("/"):
                raise ToolError(f"{path!r} is a folder; no picture was made", hint="Give a file name.")
        try:
            made = await images.make_image(prompt, size=size, session=context.session)
        except (ModelError, UserError) as error:
            raise ToolError(error.present()) from error
        endings = _ENDINGS[made.mime]
        if not path.lower().endswith(endings):
            path += endings[0]
        with Root(context.workspace, veil=context.veil) as root:
            spot = root.target(path)
            before = read_bytes(spot) if spot.kind == "file" else None
            intent = await replace(root, spot, made.data, before=before, context=context)
        return text_result(
            f"made {spot.relative} ({made.mime}, {len(made.data):,} bytes)",
            details=Details(summary=f"made {spot.relative}", path=intent.path, sha256=intent.after),
        )

    return make_image
