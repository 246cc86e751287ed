"""The vocabulary of error classes.

Classes are for grouping: each failed call has one, read from the message that gave the failure away.
"""

from __future__ import annotations

import re

ERROR_CLASSES: dict[str, str] = {
    "timeout": "it took too long and was given up",
    "rate_limited": "too many requests, or a quota is used up",
    "permission_denied": "not signed in, or not allowed",
    "unknown_tool": "no tool, function or action of that name",
    "missing_parameter": "a required parameter or field was not given",
    "unknown_parameter": "a parameter, option or field that does not exist",
    "syntax_error": "a query, command or program that cannot be parsed",
    "unknown_column": "a database column that does not exist",
    "unknown_table": "a database table that does not exist",
    "command_not_found": "a program that is not installed",
    "not_found": "the thing asked for does not exist",
    "conflict": "it collides with what is there: duplicates, overlaps, locks",
    "invalid_value": "a parameter whose value is refused",
    "connection_error": "a host or service could not be reached",
    "parse_error": "data that cannot be decoded",
    "insufficient_resources": "money, stock, seats, memory or disk space do not suffice",
    "not_allowed_in_state": "the thing exists, but is not in a state that allows it",
    "server_error": "the service itself broke (5xx)",
    "failed_check": "a build, a test or a check that did not pass",
    "exception": "a program ended with an exception or crashed",
    "error": "none of the above",
}


def one_of(*alternatives: str, flags: int = re.IGNORECASE, before: str = "", after: str = "") -> re.Pattern[str]:
    """A pattern that matches where any of the alternatives does."""
    return re.compile(f"{before}(?:{'|'.join(alternatives)}){after}", flags)


_SCAN = 800  # characters of a message that are classified


_BY_MESSAGE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("server_error", one_of(r"status(?:_?code)?[\"']?\s{0,3}[=:]\s{0,3}5\d\d")),
    ("timeout", one_of(r"\w{0,20}timeout(?:error|expired|exception)?", r"timed out")),
    ("permission_denied", one_of(r"permission(?:denied)?error")),
    (
        "unknown_column",
        one_of(
            r"unknown column|no such column|undefinedcolumn|column \S{1,80} (?:does not|doesn't) exist",
            r"invalid column name|ORA-00904",
        ),
    ),
    (
        "unknown_table",
        one_of(
            r"no such table|unknown table|undefinedtable",
            r"(?:table|relation|view)\b.{0,80}(?:does not|doesn't) exist|invalid object name|ORA-00942",
            r"unknown database",
        ),
    ),
    (
        "command_not_found",
        one_of(
            r"command not found|未找到命令|is not recognized as|executable file not found|^\S{1,80}: not found\s*$",
        ),
    ),
    (
        "unknown_tool",
        one_of(
            r"(?:unknown|no such|invalid|unsupported|undefined|unrecognized) (?:tool|function|action|method|endpoint|"
            r"operation|skill)\b",
            r"\b(?:tool|function|action|(?<!payment )(?<!shipping )(?<!delivery )method)\b.{0,60}"
            r"\b(?:not found|does not exist|doesn't exist|not exist|"
            r"is not (?:registered|defined|available))",
            r"is not a valid tool|endpoint .{0,80}(?:does not|doesn't) exist|api (?:does not|doesn't) exist",
            r"-32601",
        ),
    ),
    (
        "rate_limited",
        one_of(
            r"rate.?limit|too many requests|quota|throttl|\b429\b|over_query_limit|请求过于频繁|频率",
        ),
    ),
    (
        "permission_denied",
        one_of(
            r"permission.?denied|access.?(?:is )?denied|unauthori[sz]ed|unauthenticated|forbidden",
            r"not (?:authori[sz]ed|permitted|authenticated|logged in)|authenticat|api.?key|credential",
            r"subscri(?:bed|ption)|\b40[13]\b|request_denied|EACCES|EPERM|login failed|wrong password",
            r"token (?:has )?expired|read.?only (?:database|file)|outside (?:the )?allowed|权限|未授权|无权|登录失败",
        ),
    ),
    (
        "missing_parameter",
        one_of(
            r"missing (?:\d+ |a |an |the )?(?:required|mandatory|parameter|argument|field|positional|value|operand|"
            r"key)",
            r"(?:is|are) (?:a )?required|field required",
            r"required (?:parameter|argument|field|property|positional)|(?:option|argument) requires",
            r"requires an argument|type=missing|must (?:provide|specify|supply)|missing .{0,40}argument",
            r"value_error\.missing|(?:must not|cannot|can't|may not) be (?:empty|blank|null|none)|缺少|必填|不能为空",
        ),
    ),
    (
        "syntax_error",
        one_of(
            r"syntax ?error|sql syntax|parse error near",
            r"unexpected (?:eof|end of (?:file|input)|token|character|identifier)|unterminated|invalid syntax",
            r"indentationerror|runaway regular|unmatched|unbalanced|malformed (?:command|query|expression)",
            r"unexpected .{1,20}\b(?:at|near) (?:position|line|column|character)",
            r"expected .{0,40}, found|extra '|语法错误",
        ),
    ),
    (
        "unknown_parameter",
        one_of(
            r"unexpected (?:keyword )?argument|unexpected parameter",
            r"""(?:unknown|unrecognized|invalid|illegal|no such|bad) (?:command.line )?(?:option|flag|switch|"""
            r"""predicate|argument(?!.{0,80}(?:for|to) [\"'`])|parameter name|key|field|property|operator)\b""",
            r"unknown (?:parameter|operator)|extra (?:fields|inputs|operand)|extra_forbidden",
            r"cannot query field|must precede expression|未知参数",
        ),
    ),
    (
        "conflict",
        one_of(
            r"already (?:exists?|taken|in use|booked|registered)|file exists|\bconflict|duplicate|overlap",
            r"\blocked\b|unique constraint|\b409\b|multiple occurrences|冲突|已存在|重复",
        ),
    ),
    (
        "not_found",
        one_of(
            r"not.?found|no such|(?:does not|doesn'?t|not) exist|cannot find|can't find|could not find",
            r"unable to locate|can't (?:locate|cd to)|did not (?:match|appear)",
            r"\bno (?:match|\w+ with\b|\w+ named|\w+ called|module|matching distribution|rule to make)|\b404\b",
            r"NoSuch\w+|ENOENT|nothing to replace|not (?:be )?located|no longer exists|不存在|未找到|找不到|没有找到",
        ),
    ),
    (
        "timeout",
        one_of(
            r"time[d-]?.?out|timeout|deadline exceeded|\b(?:408|504)\b|ETIMEDOUT|took too long|超时",
        ),
    ),
    (
        "connection_error",
        one_of(
            r"connection ?(?:refused|reset|error|aborted|closed|dropped|failed)",
            r"closed (?:the )?connection|cannot connect|could not connect",
            r"failed to connect|unable to connect|resolv|name or service not known|unreachable|ECONN\w+",
            r"ENOTFOUND|ERR_NAME|ERR_CONNECTION|net::|network|ssl|failed to fetch|broken pipe",
            r"could not read from remote|连接失败|无法连接|网络",
        ),
    ),
    (
        "insufficient_resources",
        one_of(
            r"insufficient|not enough|no space left|disk quota|out of (?:memory|stock|space)|^killed",
            r"cannot allocate|does not add up|balance|memoryerror|余额不足|库存不足|不足",
        ),
    ),
    (
        "parse_error",
        one_of(
            r"decod|pars(?:e|ing)\b|not valid json|invalid json|expecting value|malformed|corrupt|解析",
        ),
    ),
    (
        "invalid_value",
        one_of(
            r"\binvalid\b|not (?:a )?valid|validation error|must (?:not )?(?:be|have|match|contain|start|end)",
            r"should (?:not )?(?:be|have|match)|exceeds?|out of (?:range|bounds)|illegal|type ?error",
            r"value ?error|domain error|expected .{0,60}(?:got|received|but)|unsupported|not supported",
            r"""bad (?:request|format|value)|\b(?:400|422)\b|is a directory|not a directory|unknown \w+ [\"'\w]""",
            r"is not one of|not of the form|has \d+ characters",
            r"ambiguous|too (?:long|short|large|small|many|few)|无效|不合法|非法|参数错误|格式错误",
        ),
    ),
    (
        "not_allowed_in_state",
        one_of(
            r"cannot be \w+ed\b|can(?:not|'t|\s?not) .{0,40}because|not available|no longer|non-\w+ \w+ cannot",
            r"is disabled|has (?:already|expired)|expired",
        ),
    ),
    (
        "server_error",
        one_of(
            r"\b50[0-9]\b|internal (?:server )?error|bad gateway|service unavailable|server error",
            r"temporarily unavailable|系统异常|服务器|系统错误|内部错误",
        ),
    ),
    (
        "failed_check",
        one_of(
            r"\b[1-9]\d* failed|(?-i:\bFAILED\b)|make(?:\[\d+\])?: \*\*\*|npm ERR!|could not compile|build failed",
            r"tests? failed|error\[E\d+\]|error TS\d+|: error: |returned 1 exit status|assertionerror",
        ),
    ),
    (
        "exception",
        one_of(
            r"traceback|exception|\b\w+Error\b|panic|segmentation fault|core dumped|aborted|fatal",
        ),
    ),
)


def error_class_of(text: str) -> str:
    """The class of an error message: a key of ERROR_CLASSES, "error" where no other one fits.

    The most telling class comes first where a message carries words of several.
    """
    head = text[:_SCAN]
    for name, pattern in _BY_MESSAGE:
        if pattern.search(head):
            return name
    return "error"


def class_of_status(code: int) -> str:
    """The class of an HTTP status code."""
    exact = {
        400: "invalid_value",
        401: "permission_denied",
        402: "insufficient_resources",
        403: "permission_denied",
        404: "not_found",
        405: "unknown_tool",
        408: "timeout",
        409: "conflict",
        410: "not_found",
        422: "invalid_value",
        423: "conflict",
        429: "rate_limited",
        504: "timeout",
    }
    return exact.get(code, "server_error" if code >= 500 else "error")
