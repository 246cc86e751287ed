"""The words of the data-driven writer, in English and Chinese: templates, keyed by what they say.

`{n:call|calls}` is a count with its noun: `1 call`, `12 calls`. A `#` in it is where the number stands, if not first.
"""

from __future__ import annotations

HEADINGS: dict[str, tuple[str, str]] = {
    "core": ("Core function", "核心功能"),
    "success": ("Success patterns", "成功模式"),
    "issues": ("Common issues", "常见问题"),
    "practices": ("Best practices", "最佳实践"),
    "statistics": ("Statistics", "统计"),
}

PHRASES: dict[str, tuple[str, str]] = {
    # statistics
    "overall": (
        "{k} of {n:call|calls} worked ({rate}, 95% interval {low}–{high}){extras}.",
        "{n} 次调用中 {k} 次成功（{rate}，95% 区间 {low}–{high}）{extras}。",
    ),
    "overall_unknown": (
        "{n:call; whether it|calls; whether they} worked is not known{extras}.",
        "共 {n} 次调用；是否成功未知{extras}。",
    ),
    "by_flag": (
        (
            "By the recorded flag {k} of {n} worked ({rate}): {wrong} of these answered with an error. Read the "
            "output, not only the flag."
        ),
        "按记录的标志，{n} 次调用中 {k} 次成功（{rate}）：其中 {wrong} 次返回的是错误。要看输出，不能只看标志。",
    ),
    "by_flag_or_judge": (
        (
            "By the recorded flag, or the judge where there is none, {k} of {n} worked ({rate}): {wrong} of these "
            "answered with an error. Read the output, not only the flag."
        ),
        (
            "按记录的标志（没有标志时按评判），{n} 次调用中 {k} 次成功（{rate}）：其中 {wrong} 次返回的是错误。"
            "要看输出，不能只看标志。"
        ),
    ),
    "score": ("average score {x}", "平均评分 {x}"),
    "time": ("average time {x}", "平均耗时 {x}"),
    "tokens": ("average {x} tokens", "平均 {x} 个 token"),
    "unknown": ("outcome unknown for {x} more", "另有 {x} 次结果未知"),
    "mixed_judges": ("scores mix {x} judges", "评分来自 {x} 个评判者"),
    # core function
    "purpose": ("Purpose (from its schema): {text}", "用途（来自其模式声明）：{text}"),
    "usage": (
        "Takes {params}: given in {k} of {n:call|calls}{which}.",
        "参数 {params}：{n} 次{which}调用中有 {k} 次给出。",
    ),
    "usage_none": ("Takes no parameters in {k} of {n:call|calls}.", "{n} 次调用中 {k} 次不带参数。"),
    "usage_optional": (
        "Optional: {params}; at least one of them in {k} of {n:call|calls}{which}.",
        "可选参数：{params}；{n} 次{which}调用中有 {k} 次至少给出其一。",
    ),
    "and_more": ("{params} and {x} more", "{params} 以及另外 {x} 个"),
    "and_more_named": ("{params} and {x} more ({names})", "{params} 以及另外 {x} 个（{names}）"),
    "successful": (" that worked", "成功"),
    "all_calls": ("", ""),
    # patterns
    "pattern": (
        "{condition}: {k} of {n} worked; {others} {ok} of {on}.",
        "{condition}：{n} 次中 {k} 次成功；{others} {on} 次中 {ok} 次。",
    ),
    "pattern_useful": (
        "{condition}: {k} of {n:answer was|answers were} useful; {others} {ok} of {on}.",
        "{condition}：{n} 次回答中 {k} 次有用；{others} {on} 次中 {ok} 次。",
    ),
    "others": ("others", "其他"),
    "other_numbers": ("other numbers", "其他数值"),
    "otherwise": ("otherwise", "否则"),
    "with_it": ("with it", "给出时"),
    "without_it": ("without", "不给出时"),
    "within_clause": ("{within} with {detail}", "含 {detail} 的 {within}"),
    "within_table": ("{within} on table {detail}", "针对表 {detail} 的 {within}"),
    "within": ("{within}, {condition}", "{within}，{condition}"),
    "refused_value": (
        (
            "`{path}` worked with {good} ({ok} of {on}), never with {bad} "
            "(0 of {n}; {named:error names it|errors name it})."
        ),
        "`{path}` 为{good}时可用（{on} 次中 {ok} 次成功），为{bad}时从未成功（{n} 次中 0 次；{named} 个错误点名它）。",
    ),
    "refused_unlike": (
        (
            "`{path}` worked as {good} ({ok} of {on}), never in another form "
            "(0 of {n}; {named:error names it|errors name it})."
        ),
        "`{path}` 为{good}时可用（{on} 次中 {ok} 次成功），其他写法从未成功（{n} 次中 0 次；{named} 个错误点名它）。",
    ),
    "refused_type": (
        "`{path}` worked as {good} ({ok} of {on}), never as {bad} (0 of {n}; {named:error names it|errors name it}).",
        "`{path}` 为{good}时可用（{on} 次中 {ok} 次成功），为{bad}时从未成功（{n} 次中 0 次；{named} 个错误点名它）。",
    ),
    "refused_above": (
        "`{path}` worked up to {good} ({ok} of {on}), never above (0 of {n}; {named:error names it|errors name it}).",
        "`{path}` 不超过 {good} 时可用（{on} 次中 {ok} 次成功），超过时从未（{n} 次中 0 次；{named} 个错误点名它）。",
    ),
    "refused_under": (
        "`{path}` worked from {good} on ({ok} of {on}), never below (0 of {n}; {named:error names it|errors name it}).",
        "`{path}` 不小于 {good} 时可用（{on} 次中 {ok} 次成功），小于时从未（{n} 次中 0 次；{named} 个错误点名它）。",
    ),
    "advice_first": (
        "Before a {action}, run {first} in the same conversation: then {k} of {n} worked, otherwise {ok} of {on}.",
        "在 {action} 之前先在同一会话中执行 {first}：此时 {n} 次中 {k} 次成功，否则 {on} 次中 {ok} 次。",
    ),
    "separated": (
        (
            "{condition}: {bad:the one such call did not work|none of these # calls worked}, "
            "{k:the other|all # others} did; too few differ to rule out chance."
        ),
        "{condition}：这 {bad} 次调用无一成功，其余 {k} 次全部成功；不同的调用太少，不能排除偶然。",
    ),
    "too_few": (
        "Too few calls to say which parameters matter.",
        "调用太少，无法判断哪些参数起作用。",
    ),
    "few_calls": (
        "No failure so far, but too few calls to say what matters.",
        "至今无一失败，但调用太少，无法得出结论。",
    ),
    "all_failed": (
        "No call has worked: use another tool, or fix what the error names before calling again.",
        "无一调用成功：请改用其他工具，或先解决错误所指的问题再调用。",
    ),
    # errors
    "error": (
        "{message}{cls}: {k} of {n:failure|failures}{example}{recovered}.",
        "{message}{cls}：{n} 次失败中 {k} 次{example}{recovered}。",
    ),
    "example": (", e.g. {x}", "，例如 {x}"),
    "always": ("always {x}", "总是 {x}"),
    "recovered": ("; {r} recovered within 3 calls", "；其中 {r} 次在 3 次调用内恢复"),
    "no_output": ("(no output)", "（无输出）"),
    "empty": (
        "{k} of {n:call|calls} that did not fail answered nothing useful{example}.",
        "未失败的 {n} 次调用中有 {k} 次没有有用的回答{example}。",
    ),
    # repairs and repeats
    "repair": (
        "After {error}: {repair} ({k} of {n:recovery|recoveries}).",
        "出现 {error} 之后：{repair}（{n} 次恢复中 {k} 次）。",
    ),
    "repair_any": (
        "After an error not named here, try: {repair} ({k} of {n:recovery|recoveries} of all errors).",
        "出现此处未提到的错误之后，可试：{repair}（所有错误的 {n} 次恢复中 {k} 次）。",
    ),
    "repair_widely": (
        "After {error}: {repair} ({k} of {n:recovery|recoveries}); try it after other errors, too.",
        "出现 {error} 之后：{repair}（{n} 次恢复中 {k} 次）；其他错误之后也可一试。",
    ),
    "repair_widely_since": (
        "After {error}: {repair} ({k} of {n:recovery|recoveries} since {since}); try it after other errors, too.",
        "出现 {error} 之后：{repair}（自 {since} 起 {n} 次恢复中 {k} 次）；其他错误之后也可一试。",
    ),
    "repair_since": (
        "After {error}: {repair} ({k} of {n:recovery|recoveries} since {since}).",
        "出现 {error} 之后：{repair}（自 {since} 起 {n} 次恢复中 {k} 次）。",
    ),
    "repair_any_since": (
        "After an error not named here, try: {repair} ({k} of {n:recovery|recoveries} of all errors since {since}).",
        "出现此处未提到的错误之后，可试：{repair}（自 {since} 起所有错误的 {n} 次恢复中 {k} 次）。",
    ),
    "repair_once": (
        "After {error}: {repair} (seen once).",
        "出现 {error} 之后：{repair}（仅见一次）。",
    ),
    "target_named": (
        "After {error}: check `{path}`; the error names it or its value ({k} of {n:failure|failures}).",
        "出现 {error} 之后：检查 `{path}`，错误中有它的名称或取值（{n} 次失败中 {k} 次）。",
    ),
    "target_wanted": (
        "After {error}: add `{path}`; the error names it, the call left it out ({k} of {n:failure|failures}).",
        "出现 {error} 之后：加上 `{path}`，错误点名了它，而调用未给出（{n} 次失败中 {k} 次）。",
    ),
    "target_unknown": (
        "After {error}: leave out `{path}`, the tool knows no such parameter ({k} of {n:failure|failures}).",
        "出现 {error} 之后：去掉 `{path}`，工具没有这个参数（{n} 次失败中 {k} 次）。",
    ),
    "target_only": (
        "After {error}: change `{path}`, nothing else was given ({k} of {n:failure|failures}).",
        "出现 {error} 之后：修改 `{path}`，没有给出其他参数（{n} 次失败中 {k} 次）。",
    ),
    "unrecovered": (
        "After {error} the next calls failed too in {k} of {n:case|cases}: do not retry here, use another tool.",
        "出现 {error} 之后无法恢复：{n} 例中 {k} 例后续调用仍失败；请改用其他途径。",
    ),
    "repeat": (
        "Do not send a failed call again unchanged: {k} of {n:repeat|repeats} failed again.",
        "不要原样重发失败的调用：{n} 次重发中 {k} 次再次失败。",
    ),
    "retry": (
        "A failed call may be sent again unchanged: {k} of {n:repeat|repeats} worked.",
        "失败的调用可以原样重试：{n} 次重发中 {k} 次成功。",
    ),
    "to_statement": ("use {after} next, not another {before}", "接着用 {after}，而不是再次 {before}"),
    "to_program": ("use {after} next, not {before}", "接着用 {after}，而不是 {before}"),
    "to_action": (
        "use {path}='{after}' next, not another '{before}'",
        "接着用 {path}='{after}'，而不是再次 '{before}'",
    ),
    "added": ("add `{path}`", "加上 `{path}`"),
    "dropped": ("leave out `{path}`", "去掉 `{path}`"),
    "changed": ("change `{path}`", "修改 `{path}`"),
    "renamed": ("name it `{path}`, not `{before}`", "把 `{before}` 改名为 `{path}`"),
    "changed_shape": ("change `{path}` from {before} to {after}", "把 `{path}` 从{before}改为{after}"),
    "tables": ("keep the {before}, change its tables and columns", "保留 {before}，更换其中的表和列"),
    "names": ("keep the {before}, change its column names", "保留 {before}，更换其中的列名"),
    "clause_added": ("add {after} to the {before}", "在 {before} 中加上 {after}"),
    "clause_dropped": ("drop {after} from the {before}", "从 {before} 中去掉 {after}"),
    "flag_added": ("add {after}", "加上 {after}"),
    "flag_dropped": ("drop {after}", "去掉 {after}"),
    "arguments": ("keep {before}, change its arguments (paths, patterns)", "保留 {before}，更换其参数（路径、模式）"),
    "rewritten": (
        "keep the {before} with its tables and columns, write it differently",
        "保留 {before} 及其表和列，换一种写法",
    ),
    "repeated": ("send the same call again", "原样再发一次"),
    "mostly": ("{kind} (mostly {form})", "{kind}（多为 {form}）"),
    "no_statement": ("text that is no SQL statement", "不是 SQL 语句的文本"),
    "no_program": ("text that does not begin with a program", "不以程序名开头的文本"),
}

CONDITIONS: dict[str, tuple[str, str]] = {
    "present": ("with `{path}`", "给出 `{path}`"),
    "absent": ("without `{path}`", "不给出 `{path}`"),
    "value": ("`{path}`={detail}", "`{path}`={detail}"),
    "type": ("`{path}` as {shape}", "`{path}` 为{shape}"),
    "shape": ("`{path}` as {shape}", "`{path}` 为{shape}"),
    "unlike": ("`{path}` other than {shape}", "`{path}` 不是{shape}"),
    "uppercase": ("`{path}` with capital letters", "`{path}` 含大写字母"),
    "prose": ("`{path}` as a prose sentence", "`{path}` 为自然语句"),
    "statement": ("{detail} in `{path}`", "`{path}` 为 {detail}"),
    "clause": ("{detail}", "使用 {detail}"),
    "table": ("table {detail}", "使用表 {detail}"),
    "program": ("{detail} in `{path}`", "`{path}` 使用 {detail}"),
    "flag": ("{detail}", "使用 {detail}"),
    "part": ("{detail} in `{path}`", "`{path}` 含 {detail}"),
    "earlier": ("after an earlier successful {detail}", "此前同一会话已成功执行 {detail}"),
    "at_least number": ("`{path}` ≥ {bound}", "`{path}` ≥ {bound}"),
    "below number": ("`{path}` < {bound}", "`{path}` < {bound}"),
    "above number": ("`{path}` > {bound}", "`{path}` > {bound}"),
    "under number": ("`{path}` < {bound}", "`{path}` < {bound}"),
    "at_least items": ("`{path}` with {bound} or more values", "`{path}` 有 {bound} 个以上（含）的值"),
    "below items": ("`{path}` with fewer than {bound} values", "`{path}` 少于 {bound} 个值"),
    "at_least characters": ("`{path}` of {bound} or more characters", "`{path}` 有 {bound} 个以上（含）字符"),
    "below characters": ("`{path}` of fewer than {bound} characters", "`{path}` 少于 {bound} 个字符"),
    "at_least tables": ("{bound} or more tables", "涉及 {bound} 个以上（含）的表"),
    "below tables": ("fewer than {bound} tables", "涉及少于 {bound} 个表"),
}

SHAPES: dict[str, tuple[str, str]] = {
    "empty": ("an empty text", "空文本"),
    "date": ("a date like 2024-01-31", "形如 2024-01-31 的日期"),
    "time": ("a time like 09:30", "形如 09:30 的时间"),
    "datetime": ("a date and time like 2024-01-31T09:30", "形如 2024-01-31T09:30 的日期时间"),
    "slash_date": ("a date written with slashes or dots", "用斜杠或点书写的日期"),
    "integer_text": ("a whole number in quotes", "文本形式的整数"),
    "number_text": ("a decimal number in quotes", "文本形式的小数"),
    "email": ("an e-mail address", "电子邮件地址"),
    "url": ("a URL", "URL"),
    "uuid": ("a UUID", "UUID"),
    "path": ("a path", "路径"),
    "json_text": ("JSON inside a text", "文本中的 JSON"),
    "word": ("one word", "单个词"),
    "words": ("several words", "多个词"),
    "lines": ("several lines", "多行文本"),
    "null": ("null", "null"),
    "boolean": ("true/false", "布尔值"),
    "number": ("a number", "数字"),
    "string": ("a text", "文本"),
    "array": ("a list", "列表"),
    "object": ("an object", "对象"),
    "like": ("a text of the form {x}", "形如 {x} 的文本"),
    "list_of": ("a list of objects with {x}", "由含 {x} 的对象组成的列表"),
    "object_with": ("an object with {x}", "含 {x} 的对象"),
    "sql": ("SQL", "SQL"),
    "shell": ("a shell command", "shell 命令"),
}
