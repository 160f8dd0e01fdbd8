"""Where the program begins. Kept light: `limpet --version` pays for nothing else; `wiring` builds the rest."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from limpet import cli

COMMANDS: Mapping[str, tuple[str, str]] = {
    "agent": ("limpet.cli.agent_command:agent", "One turn: say something, print the answer."),
    "chat": ("limpet.cli.chat_command:chat", "A conversation on this terminal."),
    "gateway": ("limpet.cli.gateway_command:gateway", "Connect the agents with your chats; the process always there."),
    "web": ("limpet.cli.web_command:web", "Open the page in the browser, logged in; a password for it."),
    "status": ("limpet.cli.status_command:status", "How gateway and channels are, what waits, what was spent today."),
    "pair": ("limpet.cli.pair_command:pair", "Who may talk to the agents, and who asks to: list, approve, revoke."),
    "token": ("limpet.cli.token_command:token", "What other programs show at the API: create, list, revoke."),
    "outbox": ("limpet.cli.outbox_command:outbox_group", "What is on its way, what did not arrive; retry, drop."),
    "cron": ("limpet.cli.cron_command:cron", "Jobs: list, add, change, run; what was, and what comes."),
    "routes": ("limpet.cli.routes_command:routes", "Which agent answers where, and why."),
    "sessions": ("limpet.cli.sessions_command:sessions_group", "List, search, export and change conversations."),
    "memory": ("limpet.cli.memory_command:memory_group", "What is remembered: list, search, add, forget, take back."),
    "context": ("limpet.cli.context_command:context", "What the next request holds, in tokens."),
    "usage": ("limpet.cli.usage_command:usage", "Tokens and money, by time and by who used them."),
    "models": ("limpet.cli.models_command:models", "List, test and choose models; short names; the embedded model."),
    "media": ("limpet.cli.media_command:media", "Recordings to text, text to speech, descriptions to pictures."),
    "mcp": ("limpet.cli.mcp_command:mcp", "Servers of further tools: list, add, import, test, remove, log."),
    "skills": ("limpet.cli.skills_command:skills", "Skills: list, install, check, grant, update, remove."),
    "plugins": ("limpet.cli.plugins_command:plugins", "Plug-ins: list, info, trust, untrust."),
    "hooks": ("limpet.cli.hooks_command:hooks", "Hooks of configuration and plug-ins: list, test."),
    "audit": ("limpet.cli.audit_command:audit_group", "What changed rights or was removed: show, verify, export."),
    "sandbox": ("limpet.cli.sandbox_command:sandbox", "Prove what the sandbox of commands claims."),
    "security": ("limpet.cli.security_command:security", "What is open on this machine and in the settings."),
    "policy": ("limpet.cli.policy_command:policy", "What may run unasked: list, explain, simulate."),
    "approvals": ("limpet.cli.approvals_command:approvals", "What waits for your word; list, approve, deny, revoke."),
    "service": ("limpet.cli.service_command:service", "Keep the gateway running, by systemd or launchd."),
    "backup": ("limpet.cli.backup_command:backup", "All of the home in one file, also while a gateway runs."),
    "restore": ("limpet.cli.backup_command:restore_command", "Make the home that a backup holds."),
    "replay": ("limpet.cli.replay_command:replay_command", "Run a recorded turn again, with any model."),
    "eval": ("limpet.cli.replay_command:eval_command", "Replay a folder of recorded turns; a regression suite."),
    **cli.COMMANDS,
}
"""Every command: name to (`module:function`, what it does in a line)."""

CHECKS = (
    "limpet.cli.doctor_machine:check_commands",
    "limpet.cli.doctor_machine:check_gpu",
    "limpet.cli.doctor_machine:check_extras",
    "limpet.cli.doctor_home:check_files",
    "limpet.cli.doctor_home:check_locks",
    "limpet.cli.doctor_home:check_gateway",
    "limpet.cli.doctor_network:check_network",
    "limpet.cli.doctor_network:check_providers",
    "limpet.checks:check_sandbox",
    "limpet.checks:check_model",
    "limpet.checks:check_database",
    "limpet.cli.doctor_home:check_index",
    "limpet.checks:check_undo",
)
"""What `limpet doctor` looks at beside the checks of `cli.doctor`."""


def main() -> None:
    """The console script `limpet`."""
    sys.exit(
        cli.run(
            commands=COMMANDS,
            checks=CHECKS,
            opener="limpet.wiring:open_assistant",
            gateway="limpet.household:open_gateway",
        )
    )
