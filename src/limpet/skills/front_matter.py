"""Front matter of a SKILL.md: YAML read safely, every field checked, every fault with its line and a remedy.

The fields are those of Agent Skills, the gates those that other agents read under `metadata.openclaw` and
`metadata.nanobot`; `metadata.limpet` has all of these and what only Limpet knows: `needs`, `triggers`, `tools`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TypeGuard

from limpet.skills.skill import Front, Gates, Needs, Problem, ToolFile

LONGEST_HEAD = 20_000
"""Characters of front matter; more is not front matter."""
LONGEST_NAME, LONGEST_DESCRIPTION = 64, 1_024
"""Characters, as the Agent Skills format says."""
_MOST = 50
"""Items of one list."""
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_TOOL_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_HOST = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?::[0-9]{1,5})?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPACES = ("clawdbot", "openclaw", "nanobot", "limpet")
"""Where gates are looked for; the last one counts."""
_FIELDS = frozenset(
    [
        "name",
        "description",
        "always",
        "homepage",
        "user-invocable",
        "disable-model-invocation",
        "metadata",
        "license",
        "compatibility",
        "allowed-tools",
        "requires",
        "version",
        "author",
        "tags",
        "command-dispatch",
        "command-tool",
        "command-arg-mode",
    ]
)

Fields = Mapping[str, object]


def split(text: str) -> tuple[str, str]:
    """The YAML between two lines `---` at the top, and the rest."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---":
        return "", text
    for number, line in enumerate(lines[1:], 1):
        if line.strip() == "---":
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]).strip()
    return "", text


def read(head: str) -> Front:
    """The front matter `head`; what cannot be used is left out and becomes a problem."""
    return _Reading(head).front()


def is_name(name: str) -> bool:
    """Whether `name` is one that a skill may have."""
    return len(name) <= LONGEST_NAME and _NAME.fullmatch(name) is not None


def is_map(value: object) -> TypeGuard[dict[object, object]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


class _Reading:
    """One front matter, being read."""

    def __init__(self, head: str) -> None:
        self._head = head
        self._problems: list[Problem] = []

    def front(self) -> Front:
        fields = self._parsed()
        metadata = self._map(fields, "metadata")
        spaces = {name: self._map(metadata, name) for name in _SPACES if name in metadata}
        own = spaces.get("limpet", {})
        for key in fields:
            if key not in _FIELDS:
                self._fault(key, f"`{key}` is no field of a skill.", "Put what is your own under `metadata`.")
        gates = self._gates(fields, spaces)
        return Front(
            name=self._name(fields),
            description=self._description(fields),
            homepage=self._text(fields, "homepage"),
            always=self._truth(fields, "always", False) or self._truth(spaces.get("nanobot", {}), "always", False),
            invocable=self._truth(fields, "user-invocable", True),
            listed=not self._truth(fields, "disable-model-invocation", False),
            gates=gates,
            needs=self._needs(own, gates),
            triggers=tuple(word for word in self._texts(own, "triggers") if len(word.strip()) > 1),
            tools=self._tools(own),
            problems=tuple(self._problems),
        )

    def _parsed(self) -> Fields:
        if not self._head:
            self._fault(
                "", "There is no front matter.", "Begin the file with name and description between lines `---`."
            )
            return {}
        if len(self._head) > LONGEST_HEAD:
            self._fault("", f"The front matter has over {LONGEST_HEAD:,} characters.", "Move text to the body.")
            return {}
        import yaml  # only when a front matter was not seen before: 40 ms

        try:
            if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(self._head)):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
                self._fault("", "Aliases (*name) are not read.", "Write the value out.")
                return {}
            data: object = yaml.safe_load(self._head)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 2 if error.problem_mark else 1
            self._problems.append(Problem(line, f"This is no YAML: {error.problem}.", "Quote text with `: ` or `#`."))
            return {}
        except (yaml.YAMLError, ValueError, RecursionError):
            self._fault("", "This is no YAML.", "Write `key: value` lines.")
            return {}
        if not is_map(data):
            self._fault("", "The front matter is no table of fields.", "Write `key: value` lines.")
            return {}
        return {str(key): value for key, value in data.items()}

    def _name(self, fields: Fields) -> str:
        name = self._text(fields, "name")
        if not name:
            self._fault("name", "`name` is missing.", "Give the folder's name.")
        elif not is_name(name):
            self._fault("name", f"{name[:80]!r} is no name.", "Use a-z, 0-9 and single hyphens, at most 64.")
            return ""
        return name

    def _description(self, fields: Fields) -> str:
        text = " ".join(self._text(fields, "description").split())
        if not text:
            self._fault("description", "`description` is missing.", "Say what it does and when to use it.")
        elif len(text) > LONGEST_DESCRIPTION:
            self._fault("description", f"`description` has {len(text):,} characters.", "At most 1,024 are kept.")
        return text[:LONGEST_DESCRIPTION]

    def _gates(self, fields: Fields, spaces: Mapping[str, Fields]) -> Gates:
        """The gates of all spaces; where two say something of the same, the later one counts."""
        found = self._requires(fields)
        systems: tuple[str, ...] = ()
        skipped = False
        for name, space in spaces.items():
            found |= self._requires(space)
            systems = self._texts(space, "os") or systems
            skipped = skipped or (name in ("openclaw", "clawdbot") and self._truth(space, "always", False))
        return Gates(
            os=systems,
            bins=found.get("bins", ()),
            any_bins=found.get("anyBins", ()),
            env=found.get("env", ()),
            config=found.get("config", ()),
            tools=found.get("tools", ()),
            skipped=skipped,
        )

    def _requires(self, space: Fields) -> dict[str, tuple[str, ...]]:
        if is_list(space.get("requires")):
            return {"bins": self._texts(space, "requires")}
        requires = self._map(space, "requires")
        return {
            key: self._texts(requires, key) for key in ("bins", "anyBins", "env", "config", "tools") if key in requires
        }

    def _needs(self, own: Fields, gates: Gates) -> Needs:
        given = self._map(own, "needs")
        place = self._text(given, "place")
        if place not in ("", "host", "sandbox"):
            self._fault("place", f"{place!r} is no place.", "Write `host`, or leave it out.")
        return Needs(
            hosts=tuple(
                host for host in map(str.lower, self._texts(given, "hosts")) if self._fits(host, _HOST, "hosts")
            ),
            host=place == "host",
            bins=tuple(dict.fromkeys((*gates.bins, *self._texts(given, "bins")))),
            secrets=tuple(name for name in self._texts(given, "secrets") if self._fits(name, _VARIABLE, "secrets")),
        )

    def _fits(self, text: str, shape: re.Pattern[str], key: str) -> bool:
        if shape.fullmatch(text):
            return True
        what = "host" if key == "hosts" else "name of a secret"
        self._fault(key, f"{text[:80]!r} is no {what}.", "It was left out.")
        return False

    def _tools(self, own: Fields) -> tuple[ToolFile, ...]:
        given = own.get("tools")
        if given is None:
            return ()
        if not is_list(given):
            self._fault("tools", "`tools` is no list.", "Write one item for each tool.")
            return ()
        tools: list[ToolFile] = []
        for item in given[:_MOST]:
            try:
                tools.append(tool_of(item))
            except ValueError as error:
                self._fault("tools", f"A tool is left out: {error}.", "See docs/skills.md for its fields.")
        return tuple(tools)

    def _map(self, fields: Fields, key: str) -> Fields:
        """A table, which some skills write as the text of a JSON object."""
        value = fields.get(key)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                value = ""
        if is_map(value):
            return {str(name): item for name, item in value.items()}
        if value is not None and not (key == "requires" and is_list(value)):
            self._fault(key, f"`{key}` is no table.", "Write its fields below it, indented.")
        return {}

    def _texts(self, fields: Fields, key: str) -> tuple[str, ...]:
        value = fields.get(key)
        if isinstance(value, str):
            value = [value]
        if not is_list(value):
            if value is not None:
                self._fault(key, f"`{key}` is no list.", "Write [one, two].")
            return ()
        if len(value) > _MOST:
            self._fault(key, f"`{key}` has {len(value)} items.", f"The first {_MOST} are read.")
        return tuple(text for item in value[:_MOST] if (text := scalar(item)))

    def _text(self, fields: Fields, key: str) -> str:
        value = fields.get(key)
        if value is not None and not isinstance(value, str | int | float):
            self._fault(key, f"`{key}` is no text.", "Quote it.")
        return scalar(value)

    def _truth(self, fields: Fields, key: str, default: bool) -> bool:
        value = fields.get(key, default)
        if isinstance(value, bool):
            return value
        self._fault(key, f"`{key}` is neither true nor false.", f"{str(default).lower()} is taken.")
        return default

    def _fault(self, key: str, text: str, remedy: str) -> None:
        self._problems.append(Problem(self._line(key), text, remedy))

    def _line(self, key: str) -> int:
        """The line in the file where `key` first stands, else the first one."""
        for number, line in enumerate(self._head.splitlines(), 2):
            if key and re.match(rf"[\s\"'-]*{re.escape(key)}[\"']?\s*:", line):
                return number
        return 1


def scalar(value: object) -> str:
    """Text and numbers as text, on one line. Not `str(value)` of anything else: it could be of any size."""
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def tool_of(given: object) -> ToolFile:
    """The tool that a table describes. Raises `ValueError` that says what is wrong."""
    fields: Fields = {str(key): value for key, value in given.items()} if is_map(given) else {}
    name, run = scalar(fields.get("name")), fields.get("run")
    if not _TOOL_NAME.fullmatch(name):
        raise ValueError(f"{name[:40]!r} is no name for a tool (a-z, 0-9, _, at most 32)")
    words = [run] if isinstance(run, str) else run
    if not is_list(words) or not words or not all(isinstance(word, str) and word for word in words):
        raise ValueError(f"`run` of {name} has to be a file of the skill, or a list that begins with one")
    schema = fields.get("parameters", {"type": "object", "properties": {}})
    if not is_map(schema) or schema.get("type") != "object":
        raise ValueError(f"`parameters` of {name} has to be a JSON Schema of type object")
    try:
        text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        raise ValueError(f"`parameters` of {name} is no JSON") from None
    if len(text) > LONGEST_HEAD:
        raise ValueError(f"`parameters` of {name} has {len(text):,} characters, over {LONGEST_HEAD:,}")
    timeout = fields.get("timeout", 60)
    if not isinstance(timeout, int) or not 1 <= timeout <= 600:
        raise ValueError(f"`timeout` of {name} is 1 to 600 seconds")
    about = scalar(fields.get("description"))[:LONGEST_DESCRIPTION]
    return ToolFile(name, about or name, tuple(map(str, words)), text, timeout)
