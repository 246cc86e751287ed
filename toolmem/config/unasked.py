"""Models that somebody names and nothing asks, because the backend is still the one that works without a model."""

from __future__ import annotations

from toolmem.config.layers import CLASS_DEFAULT, DEFAULT, Origins
from toolmem.config.settings import Settings

_WITHOUT_A_MODEL = {"llm": "offline", "embedding_model": "hashing"}
_OF_A_MODEL = (("model_name",), ("params", "base_url"), ("params", "api_key"))


def unasked_models(settings: Settings, origins: Origins) -> list[str]:
    """A warning for each model that was named while its backend was left at the default.

    Who writes the backend down, `offline` as well, has decided, and hears nothing.
    """
    warnings = []
    for section, backend in _WITHOUT_A_MODEL.items():
        entries = getattr(settings, section)
        for name, entry in entries.items():
            if entry.backend != backend or not _nobody_said(origins, (section, name, "backend")):
                continue
            given = [path for path in _OF_A_MODEL if not _nobody_said(origins, (section, name, *path))]
            if given:
                option = ".".join((section, name, *given[0]))
                warnings.append(
                    f"{option}: no model is asked, because the backend is {backend!r}; add {section}.{name}.backend="
                    f"dashscope or {section}.{name}.backend=openai_compatible"
                )
    return warnings


def _nobody_said(origins: Origins, path: tuple[str, ...]) -> bool:
    return origins.of(path) in (DEFAULT, CLASS_DEFAULT)
