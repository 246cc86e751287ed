"""The indices under a prefix: their mappings, their creation, and the schema version that they carry.

An index `<prefix>-<kind>-v1` is reached by the alias `<prefix>-<kind>`, so that a later schema can live beside it.
`indices.yaml` has the fields. Vectors get one field per embedder ("generation"), added when the first of its vectors is
written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from toolmem.errors import StoreVersionError
from toolmem.store.elastic import server_errors
from toolmem.store.elastic.cluster import Cluster

SCHEMA_VERSION = 1
_NOT_ALLOWED = (400, 403, 404, 405, 410)  # how hosted services and other privileges answer; 401 is an error
OLDEST_SERVER = (8, 13)  # the first with `flat` and `int8_hnsw` vectors

_INDICES: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("indices.yaml").read_text(encoding="utf-8"))
KINDS = tuple(_INDICES)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which indices there are, and how they are made."""

    prefix: str
    shards: int
    replicas: int
    vector_index: str  # flat, int8_hnsw

    def alias(self, kind: str) -> str:
        return f"{self.prefix}-{kind}"

    def index(self, kind: str) -> str:
        return f"{self.prefix}-{kind}-v{SCHEMA_VERSION}"

    @property
    def aliases(self) -> list[str]:
        return [self.alias(kind) for kind in KINDS]


async def check_server(connection: Cluster) -> str:
    """The server's version. Raises StoreUnavailable where it is too old. "" where nobody may ask for it."""
    # First of its nodes: a node without the main module does not answer `GET /`.
    answer = await connection.call(lambda es: es.nodes.info(metric="http"), ignore=_NOT_ALLOWED)
    if answer.meta.status == 200 and answer["nodes"]:
        version = min((str(node["version"]) for node in answer["nodes"].values()), key=_number)
    else:
        answer = await connection.call(lambda es: es.info(), ignore=_NOT_ALLOWED)
        if answer.meta.status != 200:
            return ""
        version = str(answer["version"]["number"])
    if _number(version) < OLDEST_SERVER:
        raise server_errors.too_old(version, connection.location)
    return version


def _number(version: str) -> tuple[int, int]:
    major, minor, *_ = (int(part) if part.isdecimal() else 0 for part in [*version.split("."), "0", "0"])
    return major, minor


async def prepare(connection: Cluster, layout: Layout) -> None:
    """Create what is missing; another process may do the same at the same time. Raises StoreVersionError."""
    found = await _schema_versions(connection, layout)
    for alias, version in found.items():
        if version != SCHEMA_VERSION:
            raise StoreVersionError(
                f"the index {alias} at {connection.location} has schema version {version}, this toolmem reads version "
                f"{SCHEMA_VERSION}: use the toolmem that wrote it, or set vector_store.<name>.params.index_prefix to "
                "another prefix"
            )
    missing = [kind for kind in KINDS if layout.alias(kind) not in found]
    await asyncio.gather(*(_create(connection, layout, kind) for kind in missing))


async def _schema_versions(connection: Cluster, layout: Layout) -> dict[str, int]:
    """By alias; an index without toolmem's mark counts as version 0."""
    answer = await connection.call(
        lambda es: es.indices.get(index=",".join(layout.aliases), ignore_unavailable=True, allow_no_indices=True),
        ignore=(404,),
    )
    if answer.meta.status == 404:
        return {}
    return {
        alias: int(index["mappings"].get("_meta", {}).get("toolmem_schema", 0))
        for index in answer.body.values()
        for alias in index["aliases"]
        if alias in layout.aliases
    }


async def _create(connection: Cluster, layout: Layout, kind: str) -> None:
    made = _INDICES[kind]
    mappings = {
        "dynamic": "strict",
        "_meta": {"toolmem_schema": SCHEMA_VERSION},
        "_source": {"excludes": made["not_in_source"]} if "not_in_source" in made else {},
        "properties": made["properties"],
    }
    settings = {
        "number_of_shards": 1 if kind == "meta" else layout.shards,
        "number_of_replicas": layout.replicas,
        "refresh_interval": made["refresh_interval"],
    }
    answer = await connection.call(
        lambda es: es.indices.create(
            index=layout.index(kind), mappings=mappings, settings=settings, aliases={layout.alias(kind): {}}
        ),
        ignore=(400,),
    )
    if answer.meta.status == 400:
        cause = server_errors.error_cause(answer.body)
        if cause.get("type") != "resource_already_exists_exception":  # by another process, alias included
            raise server_errors.refusal(400, cause, connection.location)


# -- vector fields


def vector_field(generation: int) -> str:
    return f"vector_{generation}"


def packed_field(generation: int) -> str:
    """Its float32 numbers as they are, for exact cosines and for writing the document again."""
    return f"packed_{generation}"


async def ensure_vector_fields(connection: Cluster, layout: Layout, generation: int, dimension: int) -> None:
    """Add the fields of a generation where they are not there yet. Their kind stays what it was made as."""
    for kind in ("tools", "records"):
        index = layout.alias(kind)
        if vector_field(generation) in (await mapped_fields(connection, index)):
            continue
        properties: Mapping[str, Any] = {
            vector_field(generation): {
                "type": "dense_vector",
                "dims": dimension,
                "index": True,
                "similarity": "cosine",
                "index_options": {"type": layout.vector_index},
            },
            packed_field(generation): {"type": "binary", "doc_values": True},
        }
        answer = await connection.call(
            lambda es, index=index, properties=properties: es.indices.put_mapping(index=index, properties=properties),  # type: ignore[misc]
            ignore=(400,),
        )
        if answer.meta.status == 400 and vector_field(generation) not in (await mapped_fields(connection, index)):
            raise server_errors.refusal(400, server_errors.error_cause(answer.body), connection.location)


async def mapped_fields(connection: Cluster, index: str) -> dict[str, Any]:
    answer = await connection.call(lambda es: es.indices.get_mapping(index=index))
    (mapping,) = answer.body.values()
    fields: dict[str, Any] = mapping["mappings"]["properties"]
    return fields
