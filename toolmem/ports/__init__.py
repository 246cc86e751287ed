"""The protocols by which the parts of toolmem meet. Nothing here knows an engine, a model or a file.

    clock       time, so that tests can drive it
    metering    a request to a model: on whose behalf, and as it is booked
    models      chat models and tokenizers
    embedding   texts into vectors
    judging     who judges a call
    guidance    who writes guidance
    store       what every backend of the memory promises; `stored`: what it is asked with and answers
    services    what an op may ask for

Everything is imported from here: `from toolmem.ports import MemoryStore`.
"""

from toolmem.ports.clock import Clock
from toolmem.ports.embedding import Embedder, EmbedderIdentity
from toolmem.ports.guidance import GuidanceWriter
from toolmem.ports.judging import Judge
from toolmem.ports.metering import LedgerEntry, Meter, Purpose
from toolmem.ports.models import LLM, Completion, Tokenizer
from toolmem.ports.services import ConfiguredOp, Services
from toolmem.ports.store import MemoryStore
from toolmem.ports.stored import Appended, CallFailure, Document, Hit, RawRecord, Record, StoredMemory, Where

__all__ = [
    "LLM",
    "Appended",
    "CallFailure",
    "Clock",
    "Completion",
    "ConfiguredOp",
    "Document",
    "Embedder",
    "EmbedderIdentity",
    "GuidanceWriter",
    "Hit",
    "Judge",
    "LedgerEntry",
    "MemoryStore",
    "Meter",
    "Purpose",
    "RawRecord",
    "Record",
    "Services",
    "StoredMemory",
    "Tokenizer",
    "Where",
]
