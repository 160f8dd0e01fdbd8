"""The agents there are: `main`, whose settings are `agent`, and those of the table `agents`."""

from __future__ import annotations

from msgspec import structs

from limpet.config.schema import Settings

MAIN = "main"


def agent_names(settings: Settings) -> tuple[str, ...]:
    return tuple(dict.fromkeys((MAIN, *settings.agents)))


def settings_of(settings: Settings, agent: str) -> Settings:
    """The settings as they are for one agent: its own workspace, model and limits stand where `agent` does.

    A listed agent without a workspace has one in the home; one without a model uses that of `main`. An agent that is
    not listed is `main` by another name.
    """
    own = settings.agents.get(agent)
    if own is None:
        return settings
    workspace = own.workspace.strip() or f"agents/{agent}/workspace"
    return structs.replace(
        settings, agent=structs.replace(own, workspace=workspace, model=own.model or settings.agent.model)
    )
