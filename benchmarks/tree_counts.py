"""How large the tree is: lines per package beside its share, names that stand twice, the longest module and function.

    python benchmarks/tree_counts.py

The shares are those of the plan for what stood at 72e6850 (packages that are new since then are not counted in it).
`tests/docs/test_tree_counts.py` holds the counts.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

TOOLMEM = Path(__file__).resolve().parents[1] / "toolmem"
SHARES: dict[str, tuple[int, tuple[str, ...]]] = {  # by name: lines, the packages in it
    "store": (4_500, ("store",)),
    "guidance": (3_500, ("guidance",)),
    "rules": (3_000, ("rules",)),
    "research": (4_000, ("research",)),
    "server, client, cli, operations": (3_800, ("server", "client", "cli", "operations")),
    "testing": (2_300, ("testing",)),
    "judge and readers": (2_200, ("judge", "readers")),
    "providers": (1_500, ("providers",)),
    "config and flow": (2_600, ("config", "flow")),
}
REST = 2_600
NEW = ("guard",)  # packages that are new since then
# Halves of one thing: the two stores, and the suite that holds them to one contract.
MIRRORED = ("store/sqlite/", "store/elastic/", "testing/store_contract/")


@cache
def trees() -> dict[str, tuple[int, ast.Module]]:
    """By path below `toolmem/`: lines, and the module."""
    files = sorted(TOOLMEM.rglob("*.py"))
    texts = {file.relative_to(TOOLMEM).as_posix(): file.read_text(encoding="utf-8") for file in files}
    return {name: (len(text.splitlines()), ast.parse(text)) for name, text in texts.items()}


def lines_of_packages() -> list[tuple[str, int, int]]:
    """(name, lines, share) of each group of packages; the last is the rest."""
    counted = {name: _lines_below(packages) for name, (_, packages) in SHARES.items()}
    whole = sum(lines for lines, _ in trees().values()) - _lines_below(NEW)
    rows = [(name, counted[name], share) for name, (share, _) in SHARES.items()]
    return [*rows, ("rest", whole - sum(counted.values()), REST)]


def _lines_below(packages: tuple[str, ...]) -> int:
    return sum(lines for name, (lines, _) in trees().items() if name.partition("/")[0] in packages)


def classes_that_stand_twice() -> set[str]:
    """Names of classes that are defined in more than one place, those of the ops' own `Params` aside."""
    places: dict[str, int] = defaultdict(int)
    for _, tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name != "Params":
                places[node.name] += 1
    return {name for name, count in places.items() if count > 1}


def modules_that_stand_twice() -> set[str]:
    """Names of modules that several packages have; the mirrored halves of the stores count as one place."""
    places: dict[str, set[str]] = defaultdict(set)
    for name in trees():
        place, _, module = name.rpartition("/")
        if module not in {"__init__.py", "__main__.py"}:
            places[module.removesuffix(".py")].add("stores" if name.startswith(MIRRORED[:2]) else place)
    return {name for name, found in places.items() if len(found) > 1}


def functions() -> Iterator[tuple[int, str]]:
    """(lines, "path: name") of each function."""
    for path, (_, tree) in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (node.end_lineno or node.lineno) - node.lineno + 1, f"{path}: {node.name}"


def main() -> None:
    """Print the table."""
    print(f"{'package':34}{'lines':>8}{'share':>8}{'of it':>8}")
    for name, lines, share in lines_of_packages():
        print(f"{name:34}{lines:>8,}{share:>8,}{lines / share:>8.2f}")
    print(f"{'new: ' + ', '.join(NEW):34}{_lines_below(NEW):>8,}")
    print(f"{'all':34}{sum(lines for lines, _ in trees().values()):>8,} in {len(trees())} modules")
    print(f"longest module: {max((lines, name) for name, (lines, _) in trees().items())}")
    sizes = sorted(functions())
    p90 = sizes[len(sizes) * 9 // 10][0]
    print(f"functions: median {median(lines for lines, _ in sizes):g}, p90 {p90}, longest {sizes[-1]}")
    print(f"classes that stand twice: {', '.join(sorted(classes_that_stand_twice())) or 'none'}")
    print(f"modules that stand twice: {', '.join(sorted(modules_that_stand_twice())) or 'none'}")


if __name__ == "__main__":
    main()
