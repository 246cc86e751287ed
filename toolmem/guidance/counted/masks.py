"""Sets of positions as the bits of one number: counting what two of them share is one operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def mask_of(positions: Iterable[int]) -> int:
    """Positions as the bits of one number."""
    raw = bytearray()
    for position in positions:
        byte = position >> 3
        if byte >= len(raw):
            raw.extend(bytes(byte + 1 - len(raw)))
        raw[byte] |= 1 << (position & 7)
    return int.from_bytes(raw, "little")


def positions_of(mask: int) -> list[int]:
    """Positions of the bits that are set, ascending."""
    return list(_bits(mask))


def _bits(mask: int) -> Iterator[int]:
    for byte, bits in enumerate(mask.to_bytes((mask.bit_length() + 7) // 8, "little")):
        while bits:
            low = bits & -bits
            yield byte * 8 + low.bit_length() - 1
            bits ^= low
