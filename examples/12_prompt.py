"""What a model is told: builds the prompt of a brand-new workspace and shows what each section costs."""

from __future__ import annotations

import os
import tempfile

from limpet.config.machine import this_machine
from limpet.llm.tokens import estimate
from limpet.prompt.sections import PromptContext
from limpet.prompt.snapshot import build
from limpet.prompt.templates import seed_workspace

with tempfile.TemporaryDirectory() as workspace:
    seed_workspace(workspace, bootstrap=True)
    machine = this_machine(os.environ)
    for window in (200_000, 8_192):
        entry = build(PromptContext(workspace=workspace, machine=machine, window=window), ()).entry
        print(f"window {window:,}: tier {entry.tier}, about {estimate(entry.system):,} tokens")
        for section in entry.sections:
            if section.text:
                print(f"  {estimate(section.text):5,}  {section.name}")
