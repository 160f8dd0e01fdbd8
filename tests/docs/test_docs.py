"""Docs say what is true: links lead somewhere, names exist, settings and exit codes are those of the code."""

from __future__ import annotations

import importlib
import re
import shlex
import tomllib
from pathlib import Path
from typing import get_args

import click
import msgspec
import pytest
from markdown_it import MarkdownIt

from limpet import errors
from limpet.app import COMMANDS
from limpet.cli.group import LazyGroup
from limpet.config import check
from limpet.config.channels import ChannelSettings, ChannelsSettings
from limpet.config.schema import (
    AgentSettings,
    EgressSecret,
    EgressSettings,
    FactSettings,
    McpSettings,
    ModelsSettings,
    PluginsSettings,
    ProviderSettings,
    ResetSettings,
    ServerSettings,
    Settings,
    TrustedPlugin,
)
from limpet.config.table import is_table, leaves
from limpet.config.webhooks import TargetSettings, WebhookSettings, WebhooksSettings
from limpet.llm.profiles import services

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))
    local = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert not [target for target in local if not (page.parent / target).exists()]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_names_of_the_package_exist(page: Path) -> None:
    for name in re.findall(r"`(limpet(?:\.\w+)+)`", page.read_text("utf-8")):
        if not name.endswith((".db", ".lock")):
            assert resolves(name), name


def resolves(name: str) -> bool:
    """Whether `name` is a module, or something in one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part, None)
        return found is not None
    return False


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_paths_of_the_repository_exist(page: Path) -> None:
    for name in re.findall(r"`((?:src|tests|docs|scripts|examples|bench)/[\w/.-]*)`", page.read_text("utf-8")):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_toml_in_the_docs_is_a_valid_configuration(page: Path) -> None:
    for block in re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        table = tomllib.loads(block)
        assert not check.unknown_keys(table)
        assert not check.faults(table)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_make_targets_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z]+)", page.read_text("utf-8"), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def commands_in(text: str) -> list[list[str]]:
    """The calls of `limpet` in the shell blocks of a page, as words."""
    fences = [token for token in MarkdownIt().parse(text) if token.type == "fence"]
    blocks = [token.content for token in fences if token.info in ("", "sh", "bash", "console")]
    blocks = [block.replace("\\\n", " ") for block in blocks]
    lines = [line for block in blocks for line in re.split(r"\n|&&|\||  +(?=limpet )", block)]
    calls = [line.strip().removeprefix(".venv/bin/") for line in lines]
    return [shlex.split(line, comments=True)[1:] for line in calls if line.startswith("limpet ")]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_in_the_docs_are_real(page: Path) -> None:
    for words in commands_in(page.read_text("utf-8")):
        command: click.Command = LazyGroup(COMMANDS, callback=click.Command("limpet"))
        rest = words
        while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            found = command.get_command(click.Context(command), rest[0])
            assert found is not None, words
            command, rest = found, rest[1:]
        command.make_parser(click.Context(command, **command.context_settings)).parse_args(list(rest))


def test_every_setting_is_documented_with_its_default() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]*)` \|", (ROOT / "docs/config.md").read_text("utf-8"), re.MULTILINE)
    defaults = {name: value for name, value in rows if name != "env:NAME"}
    names = [name for name, _ in check.known_keys(Settings, "")]
    assert list(defaults) == [name for name in names if not name.startswith("channels.")]
    models = ModelsSettings(catalog={"<name>": FactSettings()})
    servers = McpSettings(servers={"<name>": ServerSettings()})
    egress = EgressSettings(secrets={"<name>": EgressSecret()})
    plugins = PluginsSettings(trusted={"<name>": TrustedPlugin()})
    full = Settings(
        agents={"<name>": AgentSettings()},
        providers={"<name>": ProviderSettings()},
        models=models,
        mcp=servers,
        plugins=plugins,
        egress=egress,
        webhooks=WebhooksSettings(hooks={"<name>": WebhookSettings()}, targets={"<name>": TargetSettings()}),
    )
    table = msgspec.to_builtins(full)
    assert isinstance(table, dict)
    table["sessions"]["reset_by_kind"] = {"<name>": msgspec.to_builtins(ResetSettings())}
    del table["channels"]  # each kind has a page of its own
    assert is_table(table)
    real = {".".join(key): msgspec.json.encode(value).decode() for key, value in leaves(table)}
    tables = ("providers.<name>.headers", "models.aliases", "sessions.links", "memory.bound")
    tables += ("policy.agents", "policy.channels", "policy.senders")
    tables += ("mcp.servers.<name>.env", "mcp.servers.<name>.headers", "tools.exec.secrets")
    assert {**real, **dict.fromkeys(tables, "{}")} == defaults


def test_every_setting_of_a_channel_is_documented_with_its_default() -> None:
    common = settings_on("docs/channels/README.md")
    assert common == defaults_of(ChannelSettings)
    for field in msgspec.structs.fields(ChannelsSettings):
        kind = get_args(field.type)[1]
        own = {name: value for name, value in defaults_of(kind).items() if name not in common}
        assert settings_on(f"docs/channels/{field.encode_name}.md") == own


def settings_on(page: str) -> dict[str, str]:
    return dict(re.findall(r"^\| `([^`]+)` \| `([^`]*)` \|", (ROOT / page).read_text("utf-8"), re.MULTILINE))


def defaults_of(kind: type[msgspec.Struct]) -> dict[str, str]:
    table = msgspec.to_builtins(kind())
    assert isinstance(table, dict)
    return {str(name): msgspec.json.encode(value).decode() for name, value in table.items()}


def test_exit_codes_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| (\d+) \|[^|]*\|([^|]*)\|", (ROOT / "docs/exit-codes.md").read_text("utf-8"), re.MULTILINE)
    for code, names in rows:
        for name in re.findall(r"`(\w+)`", names):
            assert getattr(errors, name).exit_code == int(code), name


def test_the_readme_is_short_and_names_its_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 150
    assert all(f"make {command}" in text for command in ('ask Q="', "chat", "test"))


def test_the_docs_name_only_commands_that_exist() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES)
    assert set(re.findall(r"`(?:\.venv/bin/)?limpet ([a-z]+)", text)) <= set(COMMANDS)


def test_the_table_of_providers_is_that_of_the_data() -> None:
    text = (ROOT / "docs/models.md").read_text("utf-8")
    table = text.partition("## Providers")[2].partition("## ")[0]
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    none = "none"
    expected = [
        (name, one.name, f"`{one.key_env}`" if one.key_env else none, f"`{one.default}`" if one.default else none)
        for name, one in services().items()
    ]
    assert rows == expected
