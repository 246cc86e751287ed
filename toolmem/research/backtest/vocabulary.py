"""The words by which a text is read: which class of error a sentence is about, and which kind of repair it names.

English and Chinese. The same words are used for every author, so that a model's text and the data-driven writer's are
read alike. All patterns are looked for in lower case.
"""

from __future__ import annotations

import re

# Phrases that name a class of error (keys: `toolmem.readers.error_classes`), beside the class's own name.
# "error" has none: such a failure is recognized by the words of its message only.
CLASS_PHRASES: dict[str, tuple[str, ...]] = {
    "timeout": (r"tim(?:ed|es|e|ing)[ -]?out", r"took too long", r"deadline", "超时"),
    "rate_limited": (r"rate[ -]limit", r"too many requests", r"quota", r"throttl", "限流", "请求过于频繁", "频率限制"),
    "permission_denied": (
        *(r"permission", r"(?:access|authori[sz]ation) (?:is )?denied", r"forbidden", r"unauthori[sz]ed"),
        *("权限", "未授权", "拒绝访问"),
    ),
    "unknown_tool": (r"(?:unknown|no such|invalid) (?:tool|action|function)", "未知工具", "工具不存在"),
    "missing_parameter": (
        *(
            r"missing (?:\w+ ){0,3}(?:parameter|argument|field|value)",
            r"(?:parameter|argument|field) is (?:missing|required)",
        ),
        *("缺少", "必填", "未提供", "缺失"),
    ),
    "unknown_parameter": (
        *(r"unknown (?:parameter|argument|field|option|flag)", r"unexpected (?:keyword )?(?:parameter|argument)"),
        *(
            r"unrecogni[sz]ed (?:parameter|argument|option|flag)",
            r"not a parameter",
            "未知参数",
            "未知选项",
            "多余的参数",
        ),
    ),
    "syntax_error": (r"syntax", r"cannot be parsed", r"malformed (?:command|query)", "语法"),
    "unknown_column": (
        *(
            r"(?:unknown|missing|wrong|invalid|no such|non-?existent) columns?",
            r"columns?\b.{0,40}(?:not|n't|n’t) (?:exist|found)",
        ),
        *("未知列", "未知的列", "列不存在", "列名错误", "字段不存在", "未知字段"),
    ),
    "unknown_table": (
        *(
            r"(?:unknown|missing|wrong|invalid|no such|non-?existent) tables?",
            r"tables?\b.{0,40}(?:not|n't|n’t) (?:exist|found)",
        ),
        *("未知表", "表不存在", "表名错误", "找不到表"),
    ),
    "command_not_found": (
        *(r"command (?:is )?not (?:found|installed)", r"program (?:is )?not (?:found|installed)", r"not installed"),
        *("未找到命令", "命令不存在", "未安装"),
    ),
    "not_found": (
        *(
            r"(?:not|never|n't|cannot be|can't be) (?:be )?found",
            r"no such",
            r"(?:not|n't|n’t) exist",
            r"non-?existent",
        ),
        *("未找到", "找不到", "不存在", "没有找到"),
    ),
    "conflict": (
        *(r"conflict", r"already (?:exist|taken|in use|booked)", r"duplicate", r"locked", r"overlap", r"busy"),
        *("冲突", "已存在", "重复", "占用", "锁定"),
    ),
    "invalid_value": (
        *(r"invalid", r"(?:wrong|bad|unsupported|unaccepted|illegal) (?:value|format|type|form|date|unit)"),
        *(
            r"out of range",
            r"not (?:a )?valid",
            r"not supported",
            "无效",
            "不合法",
            "格式错误",
            "取值错误",
            "超出范围",
            "不支持",
        ),
    ),
    "connection_error": (r"connection", r"unreachable", r"network", r"could not be reached", "连接", "网络"),
    "parse_error": (
        r"(?:cannot|could not|fail\w* to) (?:be )?(?:parse|decode)",
        r"not valid json",
        "解析失败",
        "无法解析",
    ),
    "insufficient_resources": (
        *(
            r"insufficient",
            r"not enough",
            r"(?:does|do)(?: not|n't) add up",
            r"balance",
            r"out of (?:stock|memory|space)",
        ),
        *("不足", "余额", "不够", "总额不符"),
    ),
    "not_allowed_in_state": (
        *(
            r"not available",
            r"unavailable on",
            r"cannot be \w+ed",
            r"not allowed",
            r"(?:wrong|current|not in a) (?:state|status)",
        ),
        *("不可用", "不允许", "状态不", "不能被"),
    ),
    "server_error": (
        r"server error",
        r"service (?:is )?unavailable",
        r"\b5\d\d\b",
        r"internal error",
        "服务器错误",
        "服务不可用",
    ),
    "failed_check": (
        r"(?:test|build|check)s? (?:that )?fail",
        r"fail\w* (?:test|build|check)",
        "测试失败",
        "构建失败",
        "检查失败",
    ),
    "exception": (r"exceptions?", r"traceback", r"crash", "异常", "崩溃"),
    "no_output": (
        r"no output",
        r"empty output",
        r"without (?:any )?output",
        r"silent",
        "无输出",
        "没有输出",
        "输出为空",
    ),
}

# A sentence about whatever failure.
GENERIC = re.compile(
    r"after (?:any|a|every|each) (?:failure|error|failed call)|(?:any|every) (?:failure|error)\b|"
    r"(?:if|when|whenever|once) (?:it|a call|the call|this|any call|a query|a command|the tool) (?:fails|errors)|"
    r"after (?:an error not named here|other errors)|此处未提到的错误|其他错误之后|"
    r"on (?:failure|error)\b|任何(?:失败|错误)|(?:每次)?(?:失败|出错)(?:之后|后|时)|如果(?:调用)?(?:失败|出错)"
)

_NOT = (
    r"(?:do not|don't|don’t|never|not|avoid|stop|no need to|without|instead of|rather than|"
    r"不要|勿|避免|不再|而不是|切勿|无需)"
)

ADD = re.compile(
    r"\b(?:add|adds|adding|include|give|giving|provide|pass|supply|specify|set|fill in|send along|state|always|use|"
    r"name|require[sd]?|mandatory|needed)\b|加上|添加|增加|提供|给出|指定|传入|补充|填写|必填|必须"
)
DROP = re.compile(
    r"\b(?:leave out|leaving out|omit|omitting|drop|dropping|remove|removing|without|delete|skip|unset)\b|"
    rf"{_NOT} (?:\w+ )?(?:give|giving|pass|passing|use|using|send|set|add|include|including|specify|supply|provide)|"
    r"去掉|省略|移除|删除|删去|(?:不要|勿|避免)(?:给出|传入|提供|使用|指定|添加|加)"
)
CHANGE = re.compile(
    r"\b(?:change|changing|correct|replace|fix|adjust|use|using|try|switch|check|verify|confirm|look up|different|"
    r"another|other|instead|convert|rewrite|update|modify|must be|should be|needs to be|has to be|make sure|ensure|"
    r"pick|choose|select|ask|recalculate|recompute|reformat|write)\b|修改|更换|更改|改用|改为|换|替换|修正|更正|纠正|检查|核对|确认|"
    r"改成|必须(?:为|是)|应(?:为|是)|尝试|重新|使用|调整"
)
RENAME = re.compile(r"\b(?:name|named|call(?:ed)?|rename|renamed|not|instead|is)\b|改名|名为|而不是|而非|重命名")
USE = re.compile(
    r"\b(?:use|using|run|running|try|call|execute|issue|switch|inspect|first|next|then|before|look|list|check|start|"
    r"begin|replace|with|via)\b|→|->|=>|用|执行|运行|先|再|改|查看|通过|调用|尝试"
)
REWRITE = re.compile(
    r"\b(?:rewrite|rewriting|differently|rephrase|reformulate|simplif\w+|quote|escape|correct the syntax|"
    r"fix the syntax|re-?write)\b|换一种写法|重写|改写|引号|转义|简化|修正语法"
)
REPEAT = re.compile(
    r"\b(?:retry|retrying|try again|send (?:the same call|it|the call) again|repeat (?:the|it)|call (?:it )?again|"
    r"same call again|again unchanged|resend)\b|重试|原样|再发一次|再次调用|重新发送"
)
# Taken out before REPEAT is looked for: advice against it.
REPEAT_FORBIDDEN = re.compile(
    rf"{_NOT} (?:\w+ ){{0,4}}?(?:retry|retrying|try again|send|repeat|resend|call)(?: \w+){{0,4}}|"
    r"(?:不要|勿|避免|不再|切勿)[^，。；,;]{0,8}(?:重试|重发|再发|调用|重复|原样)[^，。；,;]{0,4}"
)
# Names that are dropped or kept, not used: "not another SELECT", "instead of SELECT", "keep the SELECT".
UNUSED = (
    r"(?:(?:not|instead of|rather than|keep|keeping|in|from|into|drop|avoid|another|after|before|to the|to an?)\s|"
    r"之?前先?|而不是(?:再次)?|而非|保留|从|在)\s*(?:an?\s+|the\s+|another\s+|再次\s*)?[`'\"]?"
)

# Nouns of what an identifier names: of a statement (tables, columns), of a command (files, patterns).
STATEMENT_NOUNS: dict[str, str] = {
    "tables": r"\btables?\b|\bidentifiers?\b|\btable names?\b|表",
    "names": r"\bcolumns?\b|\bfields?\b|\balias(?:es)?\b|\bidentifiers?\b|\bnames?\b|列|字段|别名|标识符",
}
ARGUMENT_NOUNS = re.compile(
    r"\barguments?\b|\bpaths?\b|\bpatterns?\b|\bfiles?\b|\bfilenames?\b|\bdirector(?:y|ies)\b|\bfolders?\b|\bnames?\b|"
    r"参数|路径|模式|文件|目录|名称"
)
# How the parts of a statement may be spelled (keys: `readers.sql`, `readers.shell`); others stand for themselves.
CLAUSE_WORDS: dict[str, str] = {
    "a subquery": r"\bsub-?quer(?:y|ies)\b|子查询",
    "an aggregate function": r"\baggregat\w+|聚合",
    "a window function": r"\bwindow functions?\b|窗口函数",
    "several statements": r"\b(?:several|multiple|one|single) statements?\b|多条语句|多个语句",
    "SELECT *": r"select ?\*",
    "UNION/INTERSECT/EXCEPT": r"\b(?:union|intersect|except)\b",
}

# Words of a message that say nothing by which it could be recognized.
STOP_WORDS = frozenset(
    {
        *("a", "an", "the", "of", "in", "on", "at", "to", "for", "by", "with", "from", "and", "or", "not", "no", "but"),
        *("is", "are", "was", "were", "be", "been", "do", "does", "did", "has", "have", "had", "can", "could", "will"),
        *(
            "would",
            "may",
            "might",
            "must",
            "should",
            "it",
            "its",
            "this",
            "that",
            "these",
            "those",
            "your",
            "you",
            "my",
        ),
        *("as", "if", "then", "than", "so", "only", "one", "all", "any", "there", "here", "which", "what", "when"),
        *("where", "error", "errors", "failed", "failure", "executing", "query", "running", "line", "near", "got"),
    }
)
