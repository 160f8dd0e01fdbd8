"""Completion at the prompt: commands with their help, what some of them take, skills, and files after `@`."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from limpet.cli.chat_files import Files

Words = Callable[[], Sequence[tuple[str, str]]]
"""Words with what each means."""
_FILE = re.compile(r'(?:^|\s)@("?)([^\s"]*|(?<=")[^"]*)$')
_ARGUMENT = re.compile(r"/([a-z_-]+)\s+(\S*)$")


class ChatCompleter(Completer):
    """`commands` are those that can stand behind a slash, `values` what goes with a command."""

    def __init__(self, commands: Words, values: dict[str, Words], files: Files) -> None:
        self._commands = commands
        self._values = values
        self._files = files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """All but files, which are looked up beside the prompt."""
        text = document.text_before_cursor
        if re.fullmatch(r"/[a-z0-9_-]*", text):
            yield from _starting(self._commands(), text[1:])
        elif (found := _ARGUMENT.fullmatch(text)) and found[1] in self._values:
            yield from _starting(self._values[found[1]](), found[2])

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        for one in self.get_completions(document, complete_event):
            yield one
        text = document.text_before_cursor
        found = None if text.startswith("/") else _FILE.search(text)
        if found is None:
            return
        typed = found[1] + found[2]
        for path in await self._files.matching(found[2]):
            quoted = f'"{path}"' if " " in path else path
            yield Completion(quoted, start_position=-len(typed), display=path)


def _starting(words: Sequence[tuple[str, str]], typed: str) -> Iterable[Completion]:
    for word, about in words:
        if word.startswith(typed):
            yield Completion(word, start_position=-len(typed), display_meta=about)


def completes(text: str) -> bool:
    """Whether what is offered is shown while typing: after a slash or an `@`, not in the middle of a sentence."""
    return text.startswith("/") or _FILE.search(text) is not None
