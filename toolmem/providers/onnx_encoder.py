"""An ONNX sentence encoder run by the package `fastembed`, beside the packaged one: `backend: fastembed`.

`model_name` is one that fastembed knows, which it downloads at first use, or a folder that holds an `.onnx` file,
`tokenizer.json` and `tokenizer_config.json`. Its vectors stand beside those of the multilingual encoder, each with half
of the weight, so that a model of one language takes nothing from the others.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolmem.config.extras import need
from toolmem.errors import ConfigError, ModelError
from toolmem.protocols import EmbedderIdentity
from toolmem.providers.packaged_encoder import DIMENSION, PackagedEncoder, views_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "fastembed"
_UNKNOWN = 0.2  # share of a text's tokens outside the model's vocabulary from which on it has nothing to say of it
_loading = threading.Lock()


class OnnxEncoder:
    """`Embedder`. `dimension`: length of the model's own vectors; None: what fastembed or the folder says.

    `setting`: the section of the configuration, for messages. Raises ConfigError for a model that there is not, and at
    the first text ModelError for one that cannot be loaded.
    """

    def __init__(self, model_name: str, dimension: int | None, setting: str) -> None:
        need(f"{setting}.backend: {NAME}", NAME)
        if not model_name:
            raise ConfigError(f"{setting}.model_name: name a model that fastembed knows, or a folder that holds one")
        self._name = model_name
        self._file = _model_file(Path(model_name).expanduser(), setting)
        self._own = dimension or _dimension(model_name, self._file, setting)
        self._model: Any = None
        self._beside = PackagedEncoder()

    @property
    def identity(self) -> EmbedderIdentity:
        name = self._name if self._file is None else f"{self._file.parent.name}-{self._file.stat().st_size}"
        return EmbedderIdentity(NAME, f"{name}+{self._beside.identity.model}", self._own + DIMENSION)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32, shape (len(texts), dimension), rows of unit length; a text without letters or digits: a zero row."""
        import numpy as np

        rows = np.zeros((len(texts), self._own + DIMENSION), dtype=np.float32)
        rows[:, self._own :] = await self._beside.embed(texts)
        rows[:, : self._own] = await asyncio.to_thread(self._vectors, list(texts))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: NDArray[np.float32] = (rows / np.where(lengths == 0, 1.0, lengths)).astype(np.float32)
        return unit

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Of unit length; zero for a text that the model's vocabulary does not hold."""
        import numpy as np

        sums = np.zeros((len(texts), self._own), dtype=np.float64)
        views = [(row, view) for row, text in enumerate(texts) for view in views_of(text)]
        if views:
            try:
                model = self._loaded()
                known = [(row, view) for row, view in views if _reads(model, view)]
                found = np.array(list(model.embed([view for _, view in known])), dtype=np.float64)
            except ModelError:
                raise
            except Exception as error:  # whatever a package of somebody else's raises
                raise ModelError(f"{NAME} {self._name}: {type(error).__name__}: {error}") from error
            if known and found.shape[1] != self._own:
                raise ModelError(
                    f"{NAME} {self._name}: vectors of {found.shape[1]} numbers, expected {self._own}; set "
                    "params.dimensions of the embedding model",
                    fatal=True,
                )
            if known:
                np.add.at(sums, [row for row, _ in known], found / np.linalg.norm(found, axis=1, keepdims=True))
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        unit: NDArray[np.float32] = (sums / np.where(lengths == 0, 1.0, lengths)).astype(np.float32)
        return unit

    def _loaded(self) -> Any:
        from fastembed import TextEmbedding

        with _loading:
            if self._model is None and self._file is None:
                self._model = TextEmbedding(self._name)
            elif self._model is None and self._file is not None:
                name = f"toolmem/{self.identity.model}"
                _register(name, self._file, self._own)
                self._model = TextEmbedding(name, specific_model_path=str(self._file.parent))
            return self._model


def _model_file(folder: Path, setting: str) -> Path | None:
    """The model in a folder; None where no folder is named."""
    if not folder.is_dir():
        if folder.is_absolute() or str(folder).startswith("."):
            raise ConfigError(f"{setting}.model_name: there is no folder {str(folder)!r}")
        return None
    found = sorted(folder.glob("*.onnx"))
    if len(found) != 1:
        raise ConfigError(f"{setting}.model_name: {str(folder)!r} holds {len(found)} files *.onnx, expected one")
    return found[0]


def _dimension(name: str, file: Path | None, setting: str) -> int:
    if file is not None:
        try:
            return int(json.loads((file.parent / "config.json").read_text(encoding="utf-8"))["hidden_size"])
        except (OSError, ValueError, TypeError, KeyError):
            raise ConfigError(
                f"{setting}.params.dimensions: {str(file.parent)!r} has no config.json that says how long the model's "
                "vectors are (hidden_size); set it"
            ) from None
    from fastembed import TextEmbedding

    for model in TextEmbedding.list_supported_models():
        if model["model"].lower() == name.lower():
            return int(model["dim"])
    raise ConfigError(f"{setting}.model_name: fastembed knows no model {name!r}, and there is no such folder")


def _register(name: str, file: Path, dimension: int) -> None:
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    if any(model["model"].lower() == name.lower() for model in TextEmbedding.list_supported_models()):
        return
    TextEmbedding.add_custom_model(
        model=name,
        pooling=PoolingType.CLS if _first_token(file.parent) else PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf=name),  # never asked: the folder is there
        dim=dimension,
        model_file=file.name,
    )


def _first_token(folder: Path) -> bool:
    """Whether the folder says (as sentence-transformers writes it) that the first token stands for the text."""
    try:
        told = json.loads((folder / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
        return bool(told["pooling_mode_cls_token"])
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _reads(model: Any, text: str) -> bool:
    """Whether the model's vocabulary holds the text, as far as its tokenizer tells."""
    tokenizer: Any = getattr(model.model, "tokenizer", None)
    unknown = None if tokenizer is None else tokenizer.token_to_id("[UNK]")
    if unknown is None:
        return True
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    return bool(ids) and ids.count(unknown) < _UNKNOWN * len(ids)
