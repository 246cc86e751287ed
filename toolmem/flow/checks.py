"""Check before a run that each op of a flow finds the keys that it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from toolmem.flow.op import Node, Op, Parallel, Sequential

WORKSPACE_KEY = "workspace"
OLD_WORKSPACE_KEY = "workspace_id"  # in ReMe and OpenHuman


def check_flow(node: Node, available_keys: Iterable[str], ops: Mapping[str, type[Op]]) -> list[str]:
    """List problems such as an op that reads a key too early. `available_keys`: the request's."""
    problems: list[str] = []
    visited: list[tuple[Op, frozenset[str]]] = []  # and the keys available before it

    def visit(node: Node, available: frozenset[str]) -> frozenset[str]:
        """Check a node. Returns the keys available after it."""
        if isinstance(node, Sequential):
            for part in node.parts:
                available = visit(part, available)
            return available
        if isinstance(node, Parallel):
            branch_by_key = _branch_by_key(node, problems)
            after = available
            for branch in node.parts:
                others = {key: other for key, other in branch_by_key.items() if other is not branch}
                for op in branch.ops():
                    problems.extend(
                        f"{op.key} reads {key!r}, which {others[key]} leaves in a parallel branch: "
                        "compose them by >>"
                        for key in (*op.reads, *op.optional)
                        if key in others
                    )
                after |= visit(branch, available | others.keys())  # one problem each
            return after
        assert isinstance(node, Op)
        missing = [key for key in dict.fromkeys(node.reads) if key not in available]
        problems.extend(_missing(node, key, ops) for key in missing)
        visited.append((node, available))
        return available | set(node.leaves)

    visit(node, frozenset(available_keys) | {WORKSPACE_KEY, OLD_WORKSPACE_KEY})
    return problems + _out_of_order(visited)


def _branch_by_key(node: Parallel, problems: list[str]) -> dict[str, Node]:
    """The branch that leaves each key."""
    branch_by_key: dict[str, Node] = {}
    for branch in node.parts:
        for key in {key for op in branch.ops() for key in op.leaves}:
            first = branch_by_key.setdefault(key, branch)
            if first is not branch:
                problems.append(
                    f"{branch} and {first} run in parallel and both leave {key!r}: "
                    "compose them by >>"
                )
    return branch_by_key


def _out_of_order(visited: list[tuple[Op, frozenset[str]]]) -> list[str]:
    """Problems of ops that run too early: a later op leaves an optional key, for no other op."""
    problems = []
    ops = [op for op, _ in visited]
    for place, (op, available) in enumerate(visited):
        for later, later_op in enumerate(ops[place + 1 :], place + 1):
            read_after = {key for each in ops[later + 1 :] for key in (*each.reads, *each.optional)}
            problems += [
                f"{op.key} uses {key!r}, but {later_op.key}, which leaves it, comes after it: "
                f"put {later_op.key} before it"
                for key in op.optional
                if key not in available and key in later_op.leaves and key not in read_after
            ]
    return problems


def _missing(op: Op, key: str, ops: Mapping[str, type[Op]]) -> str:
    providers = [name for name, kind in ops.items() if key in kind.leaves and name != op.name]
    remedy = f"put {' or '.join(providers)} before it, or declare" if providers else "declare"
    return f"{op.key} reads {key!r}, but no op before it leaves it: {remedy} it in input_schema"
