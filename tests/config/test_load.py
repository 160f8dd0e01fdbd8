"""Reading settings: file, environment, and what is said about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.config.load import line_of, load_settings
from limpet.config.schema import Settings
from limpet.errors import ConfigError


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_no_file_is_a_normal_case(tmp_path: Path) -> None:
    loaded = load_settings(tmp_path / "config.toml", {})
    assert loaded.settings == Settings()
    assert not loaded.exists
    assert not loaded.warnings


def test_a_file_sets_what_it_names(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '[agent]\nmodel = "openai/gpt-5"\nlimits.steps = 7\n[providers.home]\nbase_url = "http://127.0.0.1:1/v1"\n',
    )
    settings = load_settings(path, {}).settings
    assert settings.agent.model == "openai/gpt-5"
    assert settings.agent.limits.steps == 7
    assert settings.agent.limits.minutes == 30
    assert settings.providers["home"].base_url == "http://127.0.0.1:1/v1"


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, '[agent]\nmodel = "a/b"\nlimits.steps = 7\n')
    environ = {"LIMPET_MODEL": "c/d", "LIMPET_AGENT__LIMITS__STEPS": "9", "LIMPET_PROVIDERS__X__BASE_URL": "http://x"}
    settings = load_settings(path, environ).settings
    assert (settings.agent.model, settings.agent.limits.steps) == ("c/d", 9)
    assert settings.providers["x"].base_url == "http://x"


def test_the_long_name_of_a_variable_wins_over_the_short_one(tmp_path: Path) -> None:
    environ = {"LIMPET_MODEL": "short/one", "LIMPET_AGENT__MODEL": "long/one"}
    assert load_settings(tmp_path / "none", environ).settings.agent.model == "long/one"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[agent]\nmodel = "x"\n\n[agent.limits]\nsteps = "many"\n',
            "line 5, agent.limits.steps: expected a whole number, got text",
        ),
        ("[agent]\nlimits = { steps = 0 }\n", "line 2, agent.limits.steps: expected a whole number of at least 1"),
        ("[providers.me]\napi_key = 5\n", "line 2, providers.me.api_key: expected text, got a whole number"),
        ("agent.limits.minutes = true\n", "line 1, agent.limits.minutes: expected a number, got true or false"),
        ('providers = "openai"\n', "line 1, providers: expected a table, got text"),
        ('[store]\ndurability = "none"\n', "line 2, store.durability: expected one of full, normal"),
        ("[agent]\nmodel = gpt\n", "line 2, model: invalid value"),
        ('[agent]\nmodel = "x"\nmodel = "y"\n', "line 3, model: cannot overwrite a value"),
        ("[agent\n", "line 1, [agent: expected ']'"),
        ("version = 99\n", "line 1: version 99 was written by a newer Limpet"),
        ('version = "1"\n', "line 1: version: expected a whole number"),
    ],
)
def test_a_broken_file_names_line_and_key(tmp_path: Path, text: str, expected: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_settings(path, {})
    assert str(caught.value).startswith(f"{path}, ")
    assert expected in str(caught.value)


def test_a_file_nested_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.toml"):
        load_settings(write(tmp_path, "a = " + "[" * 50_000), {})


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(write(tmp_path, '[agent.limits]\nsteps = "a"\nminutes = "b"\n'), {})
    assert len(str(caught.value).splitlines()) == 2


def test_an_unknown_key_warns_once_and_suggests(tmp_path: Path) -> None:
    loaded = load_settings(write(tmp_path, '[agent]\nmodle = "x"\n[future]\na = 1\nb = 2\n'), {})
    assert len(loaded.warnings) == 2
    assert "agent.modle" in loaded.warnings[0]
    assert "did you mean agent.model?" in loaded.warnings[0]
    assert "there is no setting future;" in loaded.warnings[1]


def test_a_variable_that_does_not_fit_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"LIMPET_AGENT__LIMITS__STEPS: expected a whole number"):
        load_settings(tmp_path / "none", {"LIMPET_AGENT__LIMITS__STEPS": "lots"})


def test_an_unknown_variable_warns(tmp_path: Path) -> None:
    loaded = load_settings(tmp_path / "none", {"LIMPET_AGENT__MODLE": "x", "LIMPET_ASK": "not a setting at all"})
    assert loaded.warnings == (
        "environment variable LIMPET_AGENT__MODLE: there is no setting agent.modle (did you mean agent.model?)",
    )


def test_a_file_that_is_not_text_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"version = 1\nname = '\xff'\n")
    with pytest.raises(ConfigError, match="line 2: not UTF-8"):
        load_settings(path, {})


def test_a_folder_and_a_dangling_link_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings(tmp_path, {})
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="link to nothing"):
        load_settings(tmp_path / "link", {})


def test_line_of_finds_the_nearest_table() -> None:
    text = 'a = 1\n[b]\n[b."x.y"]\nc = { d = 2 }\n'
    assert line_of(text, ("b", "x.y", "c", "d")) == 4
    assert line_of(text, ("b", "zz")) == 2
    assert line_of(text, ("nothing",)) == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [("LIMPET_MODLE", "did you mean LIMPET_MODEL?"), ("LIMPET_HOMES", "did you mean LIMPET_HOME?"), ("LIMPET_ASK", "")],
)
def test_a_misspelt_variable_is_told(tmp_path: Path, name: str, words: str) -> None:
    warnings = load_settings(tmp_path / "none.toml", {name: "x"}).warnings
    assert words in "".join(warnings)
    assert bool(warnings) == bool(words)


def test_a_time_zone_that_does_not_exist_is_told(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "none.toml", {"LIMPET_TIMEZONE": "Europe/Lisbon"}).warnings == ()
    (warning,) = load_settings(tmp_path / "none.toml", {"LIMPET_TIMEZONE": "Mars/Olympus"}).warnings
    assert "no time zone Mars/Olympus" in warning


def test_a_variable_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="LIMPET_MODEL: not UTF-8"):
        load_settings(tmp_path / "none.toml", {"LIMPET_MODEL": "openai/\udcff"})


@pytest.mark.parametrize("text", ["[agent\n", "agent = 3\n", "version = 99\n"])
def test_a_broken_file_comes_with_its_remedy(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(write(tmp_path, text), {})
    assert caught.value.hint


def test_a_file_below_a_file_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    assert not load_settings(tmp_path / "home" / "config.toml", {}).exists


def test_a_setting_with_a_new_name_is_told_by_it(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[llm]\ntemperature = 0.5\n")
    (warning,) = load_settings(path, {}).warnings
    assert "did you mean models.purposes.chat.temperature?" in warning
