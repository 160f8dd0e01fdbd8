"""The built-in tools, in the order in which models are told of them."""

from __future__ import annotations

from limpet.sandbox.run import Sandbox
from limpet.toolkit.schema import FunctionTool
from limpet.tools.exec import ExecSettings, make_exec
from limpet.tools.files_edit import edit_file
from limpet.tools.files_read import read_file
from limpet.tools.files_search import find_files, grep, list_dir
from limpet.tools.files_write import delete_path, write_file
from limpet.types.ports import ImageMaker, Sessions


def builtin(
    *,
    sandbox: Sandbox,
    settings: ExecSettings | None = None,
    images: ImageMaker | None = None,
    sessions: Sessions | None = None,
    tiny: bool = False,
) -> tuple[FunctionTool, ...]:
    """All of them by name, `make_image` only with what makes `images`, those for other conversations with `sessions`.

    `tiny` tells them in the shortest words, for small windows.
    """
    tools = (
        delete_path,
        edit_file,
        make_exec(sandbox, settings or ExecSettings()),
        find_files,
        grep,
        list_dir,
        *_pictures(images),
        read_file,
        *_conversations(sessions),
        write_file,
    )
    return tuple(one.tiny() for one in tools) if tiny else tools


def _pictures(images: ImageMaker | None) -> tuple[FunctionTool, ...]:
    if images is None:
        return ()
    from limpet.tools.make_image import make_image  # only where it is configured

    return (make_image(images),)


def _conversations(sessions: Sessions | None) -> tuple[FunctionTool, ...]:
    if sessions is None:
        return ()
    from limpet.tools.sessions import session_tools  # not where there is no room for them

    return session_tools(sessions)
