"""Checks of `limpet security audit` that look at settings, at the machine, and at what was allowed for good."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_network
from urllib.parse import urlsplit

from msgspec import convert

from limpet.cli.security import Check, Hole, Scene
from limpet.config.schema import RuleSettings
from limpet.config.secrets import VARIABLE_ENDINGS, literal_secrets, too_short
from limpet.store import approvals, audit

OLD = 90 * 86_400
"""Seconds after which an `always` should be looked at again."""
INTERPRETERS = (
    "awk",
    "bash",
    "busybox",
    "dash",
    "deno",
    "env",
    "find",
    "fish",
    "git",
    "make",
    "node",
    "npm",
    "npx",
    "perl",
    "php",
    "pip",
    "python",
    "python3",
    "ruby",
    "sh",
    "ssh",
    "sudo",
    "uv",
    "uvx",
    "xargs",
    "zsh",
)
"""Programs that run whatever they are given."""
_SHARED = (
    "*.amazonaws.com",
    "*.github.io",
    "*.googleapis.com",
    "*.blob.core.windows.net",
    "*.workers.dev",
    "*.ngrok.io",
    "*.vercel.app",
    "github.com",
    "gist.github.com",
    "pastebin.com",
    "api.telegram.org",
    "discord.com",
    "hooks.slack.com",
)
_PINNED = re.compile(r".@\d|==\d|@sha|#[0-9a-f]{7}")


def plain_secrets(scene: Scene) -> Iterator[Hole]:
    for key in literal_secrets(scene.table):
        yield Hole(
            "critical",
            f"{key} stands in {scene.home.config} itself",
            "limpet secrets set NAME, then write secret:NAME.",
        )


def short_secrets(scene: Scene) -> Iterator[Hole]:
    for name in too_short(scene.secrets):
        yield Hole(
            "warning", f"{name} is too short to be kept out of logs and messages", "Use one of 8 characters or more."
        )


def keys_in_the_environment(scene: Scene) -> Iterator[Hole]:
    found = sorted(name for name, value in scene.environ.items() if value and name.upper().endswith(VARIABLE_ENDINGS))
    if found:
        text = f"{', '.join(found[:8])} in the environment: every program that you start here has them"
        yield Hole("note", text, "Keep them with `limpet secrets set`, and name them as secret:NAME in the settings.")


def root_user(scene: Scene) -> Iterator[Hole]:
    if scene.user == 0:
        yield Hole(
            "warning", "Limpet runs as root: whatever gets out of it owns the machine", "Run it as a user of its own."
        )


def sandbox(scene: Scene) -> Iterator[Hole]:
    if scene.sandbox.kind == "none":
        text = f"commands are not isolated, each of them asks: {scene.sandbox.reason}"
        yield Hole("warning", text, scene.sandbox.remedy or "Install bubblewrap.")
    if scene.settings.tools.sandbox.mode == "ask":
        yield Hole(
            "note",
            "tools.sandbox.mode is ask: the sandbox is switched off",
            'limpet config set tools.sandbox.mode "auto"',
        )


def limits_of_commands(scene: Scene) -> Iterator[Hole]:
    weak = [limit for limit in scene.sandbox.limits if re.search(r"not limited|RLIMIT_AS only", limit)]
    for limit in weak:
        yield Hole(
            "warning",
            f"a limit of commands is not in force: {limit}",
            "See docs/sandbox.md, and `limpet sandbox test`.",
        )


def network_of_commands(scene: Scene) -> Iterator[Hole]:
    if scene.settings.tools.exec.network == "open":
        text = "commands reach all of the network, this machine's own services included"
        yield Hole(
            "critical", text, 'limpet config set tools.exec.network "allow-list", and name hosts in egress.hosts.'
        )


def secrets_of_commands(scene: Scene) -> Iterator[Hole]:
    for name in scene.settings.tools.exec.secrets:
        yield Hole(
            "warning", f"every command can read the secret in {name}", f"Use egress.secrets.{name}, which it cannot."
        )


def hosts_of_commands(scene: Scene) -> Iterator[Hole]:
    egress = scene.settings.egress
    for host in (*egress.hosts, *(host for one in egress.secrets.values() for host in one.hosts)):
        name = host.partition(":")[0].lower()
        if name.startswith("*") and name.count(".") < 2:
            yield Hole("critical", f"egress admits {host}: anybody may have a name there", "Name the hosts.")
        elif name in _SHARED:
            yield Hole(
                "warning", f"egress admits {host}, which many share: data can be left there", "Name what is yours."
            )


def rules_that_silence(scene: Scene) -> Iterator[Hole]:
    for number, rule in enumerate(scene.settings.policy.rules, 1):
        for what in rule.even if rule.decision == "allow" else ():
            text = f"{_named(rule, number)} allows even what the rule of {what} asks for"
            yield Hole(
                "critical" if _broad(rule) else "warning", text, "Take `even` out, or name exactly what is meant."
            )


def broad_rules(scene: Scene) -> Iterator[Hole]:
    for number, rule in enumerate(scene.settings.policy.rules, 1):
        if rule.decision == "allow" and _broad(rule):
            yield Hole(
                "critical", f"{_named(rule, number)} allows every call", "Name a tool, and a command, path or host."
            )
        elif rule.decision == "allow" and any(_interprets(line) for line in rule.command):
            yield Hole(
                "warning", f"{_named(rule, number)} allows a program that runs others", "Name its arguments too."
            )


def command_list(scene: Scene) -> Iterator[Hole]:
    settings = scene.settings.policy.exec
    for line in settings.allow if settings.mode == "list" else ():
        if _interprets(line):
            yield Hole(
                "warning", f"{line!r} on the list of commands runs whatever it is given", "List it with its arguments."
            )


def profile(scene: Scene) -> Iterator[Hole]:
    if scene.settings.policy.profile == "full":
        yield Hole(
            "note",
            "policy.profile is full: every tool there is",
            'A smaller one: limpet config set policy.profile "coding"',
        )


def grants(scene: Scene) -> Iterator[Hole]:
    for one in approvals.recent(scene.database, "always", now=0) if scene.database else ():
        command = re.search(r'command="([^"]*)', one.wanted.plan)
        remedy = f"limpet approvals revoke {one.id}"
        if command and _interprets(command[1]):
            yield Hole("warning", f"always allowed: {one.wanted.plan[:100]}, which runs what it is given", remedy)
        elif scene.now - one.at / 1000 > OLD:
            yield Hole("note", f"always allowed for more than {OLD // 86_400} days: {one.wanted.plan[:100]}", remedy)


def approvals_that_wait(scene: Scene) -> Iterator[Hole]:
    if (minutes := scene.settings.approvals.minutes) > 1_440:
        yield Hole(
            "note", f"a question waits {minutes:g} minutes for your word", "limpet config set approvals.minutes 60"
        )


def servers_that_are_trusted(scene: Scene) -> Iterator[Hole]:
    for name, one in scene.settings.mcp.servers.items():
        if one.trust == "tool":
            yield Hole(
                "warning",
                f"what the MCP server {name} says is taken for no stranger's words",
                f'Set mcp.servers.{name}.trust to "external".',
            )
        if "*" in one.allow:
            yield Hole(
                "warning",
                f"all tools of the MCP server {name} run without asking",
                f"Name them in mcp.servers.{name}.allow.",
            )


def servers_in_the_clear(scene: Scene) -> Iterator[Hole]:
    for name, one in scene.settings.mcp.servers.items():
        if _in_the_clear(one.url):
            yield Hole(
                "critical",
                f"the MCP server {name} is asked over http: anybody on the way reads and answers",
                "Use https.",
            )


def servers_that_change(scene: Scene) -> Iterator[Hole]:
    for name, one in scene.settings.mcp.servers.items():
        program = one.command.rpartition("/")[2]
        packages = [word for word in one.args if not word.startswith("-")]
        if program in ("npx", "uvx", "bunx", "pipx") and packages and not any(map(_PINNED.search, packages)):
            text = f"the MCP server {name} is whatever {packages[0]} is today: {program} fetches its newest version"
            yield Hole(
                "warning", text, f"Name a version: {packages[0]}{'==' if program in ('uvx', 'pipx') else '@'}1.2.3"
            )


def servers_with_secrets(scene: Scene) -> Iterator[Hole]:
    for name, one in scene.settings.mcp.servers.items():
        given = [
            word for word in one.args if re.match(r"--?[\w-]*(key|token|secret|password)[\w-]*=.", word, re.IGNORECASE)
        ]
        if given or urlsplit(one.url).password or re.search(r"[?&](key|token|api_?key)=", one.url, re.IGNORECASE):
            text = f"the MCP server {name} is given a secret as an argument, which all programs of this machine see"
            yield Hole("warning", text, f"Use mcp.servers.{name}.env or headers, with secret:NAME.")


def networks(scene: Scene) -> Iterator[Hole]:
    for text in scene.settings.net.allow_cidrs:
        network = ip_network(text, strict=False)
        if network.prefixlen == 0 or network.overlaps(
            ip_network("169.254.169.254/32" if network.version == 4 else "fd00:ec2::254/128")
        ):
            yield Hole(
                "critical",
                f"net.allow_cidrs has {text}, with what clouds tell of this machine in it",
                "Make it smaller.",
            )
        elif network.is_private or network.is_loopback:
            yield Hole(
                "warning", f"net.allow_cidrs has {text}: pages can be fetched from your own network", "Make it smaller."
            )


def providers_in_the_clear(scene: Scene) -> Iterator[Hole]:
    for name, one in scene.settings.providers.items():
        if _in_the_clear(one.base_url):
            text = f"{one.base_url} of the provider {name} is http: all that is said goes over the network in the clear"
            yield Hole("critical", text, "Use https, or a server on this machine.")


def webhooks(scene: Scene) -> Iterator[Hole]:
    found = scene.settings.webhooks
    for name, one in found.hooks.items():
        where = f"webhooks.hooks.{name}"
        if not one.secret and not found.token:
            yield Hole(
                "warning",
                f"the webhook {name} has neither a secret nor a token: nothing sent to it is taken",
                f"limpet secrets set {name}, then set {where}.secret to secret:{name}.",
            )
        elif not one.secret:
            yield Hole(
                "note",
                f"the webhook {name} has no secret of its own: who has webhooks.token can send to all hooks",
                f"Set {where}.secret, and {where}.signature where the platform signs.",
            )
        if one.profile in ("coding", "full"):
            text = f"what strangers send to the webhook {name} is worked on with the tools of the profile {one.profile}"
            yield Hole("warning", text, f"Leave {where}.profile empty, or name the tools in {where}.tools.")
    for name, target in found.targets.items():
        if not target.secret:
            text = f"what is posted to the webhook {name} is not signed"
            yield Hole("note", text, f"Set webhooks.targets.{name}.secret.")
        if _in_the_clear(target.url):
            text = f"answers are posted to the webhook {name} over http: anybody on the way reads them"
            yield Hole("warning", text, "Use https.")


def other_conversations(scene: Scene) -> Iterator[Hole]:
    settings = scene.settings.sessions
    if settings.visibility == "all":
        yield Hole(
            "note",
            "each conversation can look into those of all agents",
            'limpet config set sessions.visibility "agent"',
        )
    if settings.scope == "main":
        yield Hole(
            "warning",
            "all people who write to the agent share one conversation",
            'limpet config set sessions.scope "channel-peer"',
        )


def retention(scene: Scene) -> Iterator[Hole]:
    if not scene.settings.store.keep_days:
        yield Hole("note", "what came in and went out is kept for ever", "limpet config set store.keep_days 90")


def budget(scene: Scene) -> Iterator[Hole]:
    budgets = scene.settings.budgets
    if not (budgets.day or budgets.agent_day):
        yield Hole("note", "nothing limits what a day may cost", "limpet config set budgets.day 5")


def recorded_requests(scene: Scene) -> Iterator[Hole]:
    if scene.database and scene.database.execute("SELECT 1 FROM traces LIMIT 1").fetchone():
        yield Hole(
            "note", "raw requests to models are kept, with all that was said in them", "limpet models trace --clear"
        )


def audit_chain(scene: Scene) -> Iterator[Hole]:
    for fault in audit.faults(scene.database) if scene.database else ():
        yield Hole("critical", f"the audit was changed: {fault}", "Compare limpet.db with a backup.")


def database(scene: Scene) -> Iterator[Hole]:
    remedy = "Restore a backup; see `limpet doctor`."
    if scene.fault:
        yield Hole("critical", f"limpet.db cannot be read: {scene.fault}", remedy)
    found = scene.database.execute("PRAGMA quick_check(3)").fetchall() if scene.database else []
    for (said,) in convert(found, list[tuple[str]]):
        if said != "ok":
            yield Hole("critical", f"limpet.db is damaged: {said}", remedy)


def _named(rule: RuleSettings, number: int) -> str:
    return f"the rule {rule.name or f'policy.rules.{number}'}"


def _broad(rule: RuleSettings) -> bool:
    """Whether it is about every call, or every command."""
    narrow = rule.command or rule.path or rule.host or rule.argument
    return not narrow and (rule.tool.strip("*?") == "" or rule.tool in ("exec", "process"))


def _interprets(line: str) -> bool:
    """Whether a command begins with a program that runs others, and nothing says what."""
    words = line.split()
    if not words or words[0].rpartition("/")[2] not in INTERPRETERS:
        return False
    return len(words) == 1 or any(word in ("-c", "-e", "-m", "--eval", "-exec") for word in words[1:])


def _in_the_clear(url: str) -> bool:
    """Whether an address is http, and not this machine's."""
    parts = urlsplit(url.strip())
    host = (parts.hostname or "").lower()
    return parts.scheme.lower() == "http" and host not in ("localhost", "::1") and not host.startswith("127.")


CHECKS: tuple[Check, ...] = (
    plain_secrets,
    short_secrets,
    keys_in_the_environment,
    root_user,
    sandbox,
    limits_of_commands,
    network_of_commands,
    secrets_of_commands,
    hosts_of_commands,
    rules_that_silence,
    broad_rules,
    command_list,
    profile,
    grants,
    approvals_that_wait,
    servers_that_are_trusted,
    servers_in_the_clear,
    servers_that_change,
    servers_with_secrets,
    networks,
    providers_in_the_clear,
    webhooks,
    other_conversations,
    retention,
    budget,
    recorded_requests,
    audit_chain,
    database,
)
