"""The prompt of a conversation: its keys, its history, its completions and the line below it."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import Completer
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

from limpet.cli.chat_complete import completes

_STYLE = Style.from_dict({"bottom-toolbar": "noreverse dim"})


def nothing() -> None:
    """Where there is nothing to unfold."""


def prompt_session(
    history: str,
    completer: Completer | None = None,
    *,
    toolbar: Callable[[], str] | None = None,
    unfold: Callable[[], None] = nothing,
) -> PromptSession[str]:
    """A prompt with the history in a file. Enter sends; Alt-Enter, a backslash at the end and pasting keep lines."""
    return PromptSession(
        "> ",
        history=FileHistory(history),
        completer=completer,
        complete_while_typing=Condition(_offers),
        key_bindings=_bindings(unfold),
        multiline=True,
        prompt_continuation="  ",
        bottom_toolbar=toolbar,
        enable_open_in_editor=True,
        style=_STYLE,
        reserve_space_for_menu=6,
    )


def _offers() -> bool:
    return completes(get_app().current_buffer.document.text_before_cursor)


def _is_empty() -> bool:
    return not get_app().current_buffer.text


def _bindings(unfold: Callable[[], None]) -> KeyBindings:
    bound = KeyBindings()

    @bound.add("enter", filter=~is_searching)
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        chosen = buffer.complete_state is not None and buffer.complete_state.current_completion is not None
        if chosen and not buffer.text.startswith("/"):
            buffer.complete_state = None  # the file is taken, nothing is sent yet
        elif buffer.document.current_line_before_cursor.endswith("\\") and not buffer.document.text_after_cursor:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @bound.add("escape", "enter")
    def begin_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bound.add("escape", "escape", filter=Condition(_is_empty))
    def rewind(event: KeyPressEvent) -> None:
        event.app.exit(result="/rewind")

    @bound.add("c-o")
    def show_more(event: KeyPressEvent) -> None:
        unfold()

    _ = (send, begin_line, rewind, show_more)
    return bound
