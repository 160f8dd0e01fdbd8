from __future__ import annotations

import importlib

import msgspec

from limpet.channels.kinds import KINDS
from limpet.config.channels import ChannelsSettings


def test_every_kind_has_settings_and_what_makes_it() -> None:
    assert set(KINDS) == {field.encode_name for field in msgspec.structs.fields(ChannelsSettings)}
    for place in KINDS.values():
        module, _, name = place.partition(":")
        assert callable(getattr(importlib.import_module(module), name))
