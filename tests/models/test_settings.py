"""Where settings come from, which one wins, and what is said about those that cannot be used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envscaler.errors import UsageError
from envscaler.models import ModelSettings, is_local
from envscaler.trajectory import Sampling


def load(folder: Path, text: str | None = None, **given: Any) -> ModelSettings:
    if text is not None:
        (folder / "envscaler.toml").write_text(text, encoding="utf-8")
    return ModelSettings.load(given.pop("flags", {}), environ=given.pop("environ", {}), folder=folder, **given)


def test_without_anything_the_offline_model_is_used(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert (settings.model, settings.base_url, settings.patience_s) == ("offline", None, 3600.0)


def test_flags_win_over_the_environment_and_the_environment_over_the_file(tmp_path: Path) -> None:
    text = 'model = "file"\nbase_url = "http://file/v1"\napi_key = "file-key"\ntimeout_s = 5'
    environ = {"OPENAI_BASE_URL": "http://environment/v1", "OPENAI_API_KEY": "environment-key"}
    flags = {"base_url": "http://flag/v1", "model": None}
    settings = load(tmp_path, text, environ=environ, flags=flags)
    assert settings.base_url == "http://flag/v1"
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "environment-key"
    assert (settings.model, settings.timeout_s) == ("file", 5.0)


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        """
        model = "big"
        base_url = "https://models.example/v1/"
        api_key = "k"
        max_in_flight = 4
        [models.tester]
        model = "small"
        [models.user]
        base_url = "http://localhost:8080/v1"
        [models.user.sampling]
        temperature = 0.9
        [prices."big"]
        input = 1.5
        output = 6
        [sampling]
        temperature = 0.2
        extra = { top_k = 20 }
        [headers]
        X-Team = "ours"
        [body]
        service_tier = "flex"
        """,
    )
    assert settings.base_url == "https://models.example/v1"
    assert settings.of("builder").model == "big"
    assert settings.of("tester").model == "small"
    assert settings.of("user").sampling == Sampling(temperature=0.9, extra={"top_k": 20})
    assert settings.of("tester").sampling == Sampling(temperature=0.2, extra={"top_k": 20})
    assert settings.prices["big"].output == 6


def test_a_key_is_not_sent_to_an_endpoint_that_it_was_not_given_for(tmp_path: Path) -> None:
    text = """
        model = "big"
        base_url = "https://models.example/v1"
        [models.user]
        base_url = "http://localhost:8080/v1"
        [models.agent]
        base_url = "https://models.example/v1/chat/completions"
        """
    settings = load(tmp_path, text, environ={"OPENAI_API_KEY": "k"})
    assert settings.of("user").api_key is None
    assert settings.of("agent").api_key == settings.of("builder").api_key is not None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('modle = "x"', r"envscaler\.toml: unknown key modle; known there: api_key, base_url"),
        ('[models.builder]\nmdl = "x"', r"envscaler\.toml: unknown key models\.builder\.mdl; known there: api_key"),
        ('[models.bilder]\nmodel = "x"', r"envscaler\.toml: models\.bilder: Input should be 'builder', 'tester'"),
        ('[prices."gpt-4.1"]\nin = 3', r"envscaler\.toml: .*prices\.gpt-4\.1"),
        ('base_url = "models.example"', r"envscaler\.toml: base_url: 'models\.example' is no URL of the form"),
        ("max_in_flight = 0", r"envscaler\.toml: max_in_flight: .*greater than or equal to 1"),
        ("model = ", r"envscaler\.toml: is not TOML"),
    ],
)
def test_what_cannot_be_used_in_the_file_is_named_with_the_file(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        load(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_a_bad_flag_and_a_bad_variable_are_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the command line: patience_s"):
        load(tmp_path, flags={"patience_s": -1})
    with pytest.raises(UsageError, match=r"the environment .*: base_url: 'nonsense' is no URL"):
        load(tmp_path, environ={"OPENAI_BASE_URL": "nonsense"})


def test_a_settings_file_that_is_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml: no such settings file"):
        load(tmp_path, file=tmp_path / "none.toml")


def test_a_base_url_on_the_command_line_needs_a_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="say which model to ask there, with --model"):
        load(tmp_path, flags={"base_url": "http://localhost:1/v1"})
    assert load(tmp_path, environ={"OPENAI_BASE_URL": "http://localhost:1/v1"}).model == "offline"


def test_secrets_are_not_printed(tmp_path: Path) -> None:
    settings = load(tmp_path, '[headers]\nX-Pass = "open-sesame"', environ={"OPENAI_API_KEY": "hush-hush"})
    for shown in (repr(settings), str(settings), str(settings.model_dump(mode="json"))):
        assert "hush-hush" not in shown
        assert "open-sesame" not in shown
    with pytest.raises(UsageError) as caught:
        load(tmp_path, "[api_key]\nvalue = 'hush-hush'")
    assert "hush-hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:8080/v1", True),
        ("http://127.0.0.1/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://192.168.1.4/v1", True),
        ("http://0.0.0.0:8000/v1", True),
        ("http://vllm:8000/v1", True),
        ("http://box.local/v1", True),
        ("https://api.openai.com/v1", False),
        ("https://8.8.8.8/v1", False),
    ],
)
def test_local_endpoints_are_told_from_others(url: str, local: bool) -> None:
    assert is_local(url) is local
