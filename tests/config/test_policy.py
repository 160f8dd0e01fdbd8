"""Bad rules are refused when the settings are loaded, with key and reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.config.load import load_settings
from limpet.errors import ConfigError

GOOD = '[[policy.rules]]\ndecision = "ask"\ntool = "exec"\n'


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ('decision = "alow"', "policy.rules.2"),
        ('tool = "exec"', "decision"),
        ('decision = "deny"\ncomand = ["ls"]', "comand"),
        ('decision = "allow"\neven = ["everything"]', "policy.rules.2"),
        ('decision = "deny"\ncommand = "ls"', "list"),
    ],
)
def test_bad_rules_are_refused(tmp_path: Path, rule: str, said: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"{GOOD}[[policy.rules]]\n{rule}\n")
    with pytest.raises(ConfigError, match=said) as caught:
        load_settings(path, {})
    assert "policy.rules.2" in str(caught.value)


def test_good_rules_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(GOOD)
    (rule,) = load_settings(path, {}).settings.policy.rules
    assert (rule.decision, rule.tool) == ("ask", "exec")
