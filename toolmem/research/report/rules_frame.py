"""Rules as a DataFrame, and how many of them stand beside the figures of the tools they are about.

Rules say what to do, figures what happened: the join sets them side by side and mixes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from toolmem.config.extras import need_pandas
from toolmem.models import ToolMemoryRule
from toolmem.rules.stored_rules import PRIORITIES

if TYPE_CHECKING:
    import pandas as pd


def rules_frame(rules: Iterable[ToolMemoryRule]) -> pd.DataFrame:
    """One row per rule, in the order given.

    Columns: tool_name (as the rule writes it), tool_key (trimmed, lower case: what the store and every join go by),
    rule, priority (ordered categories, the most urgent first), eager (critical or high: a candidate for every prompt),
    source, tags (joined by ", "), created_at, updated_at (UTC), id.
    """
    need_pandas()
    import pandas as pd

    rows = [
        rule.model_dump(include=set(RULE_COLUMNS))
        | {"tool_key": _key(rule.tool_name), "eager": rule.eager, "tags": ", ".join(rule.tags)}
        for rule in rules
    ]
    frame = pd.DataFrame(rows, columns=list(RULE_COLUMNS)).astype(RULE_COLUMNS)
    urgency = pd.Categorical(frame["priority"], categories=list(PRIORITIES), ordered=True)
    return frame.assign(priority=urgency)


RULE_COLUMNS = {
    "tool_name": "object",
    "tool_key": "object",
    "rule": "object",
    "priority": "object",
    "eager": "bool",
    "source": "object",
    "tags": "object",
    "created_at": "datetime64[us, UTC]",
    "updated_at": "datetime64[us, UTC]",
    "id": "object",
}


def rules_beside_tools(tools: pd.DataFrame, rules: pd.DataFrame) -> pd.DataFrame:
    """`tools` with the columns critical_rules, high_rules and normal_rules: how many rules each tool has.

    `tools`: any frame with one row per tool and a column `tool_name` (`tools_frame`, ...); `rules`: `rules_frame`. Rows
    of `tools` come first, as they stand; a tool that has rules and no row there follows, by its name, its figures
    unknown (whole numbers become the nullable `Int64` for that). A rule holds for every casing of a tool's name, so two
    spellings of one show the same rules.
    """
    import pandas as pd

    counts = pd.crosstab(rules["tool_key"], rules["priority"]).reindex(columns=list(PRIORITIES), fill_value=0)
    counts.columns = pd.Index([f"{priority}_rules" for priority in PRIORITIES])
    keys = [_key(name) for name in tools["tool_name"]]
    names = rules.drop_duplicates("tool_key").set_index("tool_key")["tool_name"]
    alone = sorted(set(names.index) - set(keys))
    whole = dict.fromkeys(tools.select_dtypes("integer").columns, "Int64")
    shown = tools.astype(whole).reset_index(drop=True).reindex(range(len(tools) + len(alone)))
    shown.loc[len(tools) :, "tool_name"] = names.reindex(alone).to_numpy()
    found = counts.reindex([*keys, *alone], fill_value=0).astype("int64").reset_index(drop=True)
    return pd.concat([shown, found], axis="columns")


def _key(tool_name: str) -> str:
    """As the namespace of a tool's rules writes its name."""
    return tool_name.strip().lower()
