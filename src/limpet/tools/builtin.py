"""The built-in tools, in the order in which models are told of them."""

from __future__ import annotations

from limpet.net.client import Web
from limpet.sandbox.run import Sandbox
from limpet.toolkit.schema import FunctionTool
from limpet.tools.aims import goal, plan
from limpet.tools.ask import ask
from limpet.tools.beside import reading_beside
from limpet.tools.exec import ExecSettings, make_exec
from limpet.tools.files_edit import edit_file
from limpet.tools.files_patch import apply_patch
from limpet.tools.files_read import read_file
from limpet.tools.files_search import find_files, grep, list_dir
from limpet.tools.files_write import delete_path, write_file
from limpet.tools.memory import memory_write
from limpet.tools.process import make_process
from limpet.tools.processes import Processes
from limpet.tools.web_fetch import make_web_fetch
from limpet.tools.web_search import SearchSettings, engine_of, make_web_search
from limpet.types.ports import ImageMaker, Sessions


def builtin(
    *,
    sandbox: Sandbox,
    settings: ExecSettings | None = None,
    images: ImageMaker | None = None,
    web: Web | None = None,
    search: SearchSettings | None = None,
    sessions: Sessions | None = None,
    processes: Processes | None = None,
    tiny: bool = False,
) -> tuple[FunctionTool, ...]:
    """All of them by name, `make_image` only with something that makes `images`, those for the web only with `web`
    and something to `search` with, those for other conversations with `sessions`.

    `tiny` tells them in the shortest words, for small windows, and leaves out those that these can do without.
    """
    keeper = processes or Processes(sandbox)
    how = settings or ExecSettings()
    tools = (
        *(() if tiny else (apply_patch,)),
        *(() if tiny else (ask,)),
        delete_path,
        edit_file,
        make_exec(sandbox, how, processes=keeper),
        find_files,
        *(() if tiny else (goal,)),
        grep,
        list_dir,
        *_pictures(images),
        memory_write,
        *(() if tiny else (plan, make_process(keeper, networked=how.network.kind != "none"))),
        reading_beside(read_file, how.shown),
        *_conversations(sessions),
        *_internet(web, search or SearchSettings()),
        write_file,
    )
    return tuple(one.tiny() for one in tools) if tiny else tools


def _pictures(images: ImageMaker | None) -> tuple[FunctionTool, ...]:
    if images is None:
        return ()
    from limpet.tools.make_image import make_image  # only where it is configured

    return (make_image(images),)


def _internet(web: Web | None, search: SearchSettings) -> tuple[FunctionTool, ...]:
    if web is None:
        return ()
    found = engine_of(search)
    return (make_web_fetch(web), *((make_web_search(web, search),) if found else ()))


def _conversations(sessions: Sessions | None) -> tuple[FunctionTool, ...]:
    if sessions is None:
        return ()
    from limpet.tools.sessions import session_tools  # not where there is no room for them

    return session_tools(sessions)
