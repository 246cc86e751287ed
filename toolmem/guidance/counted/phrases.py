"""The words of a card, in English and Chinese. What stands in quotation marks or braces came from calls."""

from __future__ import annotations

PHRASES: dict[str, tuple[str, str]] = {
    # lines
    "failed": ('failed: {sent}: "{error}"{calls}{then}', '失败：{sent}："{error}"{calls}{then}'),
    "failed_silently": ("failed: {sent}: no output{calls}{then}", "失败：{sent}：没有输出{calls}{then}"),
    "empty": ('worth nothing: {sent}: "{error}"{calls}{then}', '结果无用：{sent}："{error}"{calls}{then}'),
    "example": ("worked: {sent}{output}", "成功：{sent}{output}"),
    "pattern": (
        "{condition}: 0 of {n} calls went well; the others {ok} of {on}",
        "{condition}：{n} 次中 0 次成功；其余 {on} 次中 {ok} 次",
    ),
    "rate": ("{k} of {n} calls worked ({percent} %)", "{n} 次调用中 {k} 次成功（{percent} %）"),
    # what was sent, and what came then
    "any_call": ("a call without arguments", "不带参数的调用"),
    "then": ("; then worked: {what}", "；随后成功：{what}"),
    "answered": ("; then answered: {what}", "；随后有结果：{what}"),
    "past": ("; got past it: {what}", "；由此越过：{what}"),
    "nothing": ("; nothing worked after it yet", "；之后尚无成功的调用"),
    "again_after": ("the same call after {names}", "在 {names} 之后同样的调用"),
    "another": ("another {names}", "另一个 {names}"),
    "left_out": ("without {names}", "不带 {names}"),
    "counted": ("{what} ({k})", "{what}（{k}）"),
    "of_all": (" of {n}", "，共 {n} 次"),
    "list": (", ", "、"),
    "calls": (" ({n} calls)", "（{n} 次）"),
    # kinds of repair
    "statement": ("{after}", "{after}"),
    "program": ("{after}", "{after}"),
    "action": ("`{path}` {after}", "`{path}` {after}"),
    "added": ("with `{path}`", "加上 `{path}`"),
    "dropped": ("without `{path}`", "不带 `{path}`"),
    "changed": ("another `{path}`", "另一个 `{path}`"),
    "renamed": ("`{path}` for `{before}`", "用 `{path}` 代替 `{before}`"),
    "tables": ("other tables", "其他表"),
    "names": ("other columns", "其他列"),
    "clause_added": ("with {after}", "加上 {after}"),
    "clause_dropped": ("without {after}", "去掉 {after}"),
    "rewritten": ("the statement rewritten", "改写语句"),
    "flag_added": ("with `{after}`", "加上 `{after}`"),
    "flag_dropped": ("without `{after}`", "去掉 `{after}`"),
    "arguments": ("`{before}` with other arguments", "`{before}` 换其他参数"),
    "repeated": ("the same call, later", "稍后同样的调用"),
    # how a value is written
    "absent": ("without `{path}`", "不带 `{path}`"),
    "present": ("with `{path}`", "带 `{path}`"),
    "type": ("`{path}` as {detail}", "`{path}` 为 {detail} 类型"),
    "shape": ("`{path}` written as {detail}", "`{path}` 写成 {detail}"),
    "uppercase": ("`{path}` with capital letters", "`{path}` 含大写字母"),
}
