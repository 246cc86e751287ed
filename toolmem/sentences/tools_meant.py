"""Which tools a sentence means: by exact name, or by the things and actions that it speaks of."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from toolmem.late import late_pattern
from toolmem.late_dataclasses import dataclass
from toolmem.light_models import ToolSchema
from toolmem.readers.shell import looks_like_command
from toolmem.sentences.said_words import FAMILIES, base_forms, listed_by_name, split
from toolmem.sentences.split_text import CJK

# A thing: the words of sentences that mean it | the words of tool names that mean it. Alone it means its tools ...
_STRONG = listed_by_name(
    "mail: email e-mail mail inbox mailbox newsletter gmail 邮件 邮箱 收件箱 电邮 发信 | mail email gmail inbox smtp "
    "imap outlook sendgrid mailgun mailchimp ses sendmail; inbox: inbox mailbox 收件箱 邮箱 | inbox imap; chat: slack "
    "dm 私信 | slack chat; shell: shell terminal command console 终端 命令 | shell bash exec terminal command "
    "powershell pwsh cmd zsh sh ssh console subprocess; bash: bash | bash; browser: browser chrome 浏览器 | browser "
    "browse playwright puppeteer selenium navigate goto; web: web internet online webpage website google googling "
    "上网 网页 网站 联网 网上 | web browser http url google bing brave tavily duckduckgo serper fetch page website "
    "webpage; http: http api | http request api; calendar: calendar 日历 日程 | calendar gcal; sql: sql database db "
    "query 数据库 | sql database db query psql postgres mysql sqlite mariadb bigquery; payment: payment pay paying "
    "charge invoice credit_card debit 付款 支付 付钱 转账 汇款 打款 扣款 刷卡 信用卡 自动付 | payment pay stripe "
    "paypal transfer_money money; refund: refund refunding reimburse 退款 退钱 | refund; flight: flight plane airline "
    "机票 航班 飞机 订票 | flight; hotel: hotel 酒店 宾馆 | hotel; human: human representative agent_person 人工 真人 "
    "客服 转人工 | human agents; ticket: ticket 工单 | ticket; sms: sms text_message 短信 | sms twilio; table: "
    "drop_table truncate 删表 | drop; phone: phone telephone call 电话 | phone call twilio; force: force force-push "
    "force-pushing force-pushed 强推 强制推送 强制 | force"
)
# ... and these only together with what is done, or where the catalogue holds such a tool and nothing else is meant.
_WEAK = listed_by_name(
    "file: file files folder directory document 文件 目录 文件夹 文档 | file fs filesystem document edit; message: "
    "message announcement channel post 消息 频道 公告 群 | message slack chat discord teams telegram; event: event "
    "meeting appointment birthday 会议 活动 约会 开会 | event meeting appointment calendar; order: order 订单 | "
    "order; service: service build production prod 服务 上线 | service deploy; page: link site page url 链接 网址 "
    "页面 | url page browser web fetch; rows: table record statement row rows 表 语句 查询 | sql table query; git: "
    "force-push force-pushing rebase commit push 强推 推送 | git github gh gitlab; repository: git repo repository "
    "branch commit main master 分支 仓库 代码 | git github gh gitlab; text: text note sentence 文本 | text; "
    "mail_parts: draft reply cc bcc attachment customer recipient 抄送 附件 | mail email gmail sendmail"
)
# Actions whose verb alone means a tool that does them
_TELLING = split(
    "push deploy translate refund cancel book search transfer install commit merge restart rebase buy pay invite reboot"
)
_MORE_ACTS = listed_by_name(
    "send: send dispatch emailing e-mailing 发 寄 抄送; read: read list get; post: post dm ping announce; create: "
    "create insert add schedule put make raise open 加 安排 建; delete: delete remove deletion drop rm touch 删; run: "
    "execute exec run executing 跑 执行 运行; search: search google googling 搜; push: push pushing force-push "
    "force-pushing 推; deploy: deploy deployment rollout deploys release ship 部署 上线 发版; transfer: transfer "
    "transferred hand handed pass connect escalate 转; book: book reserve 预订 订票 订机票 订酒店 订房 订会 订餐 买; "
    "cancel: cancel cancelling cancelled cancellation 取消; translate: translate translation 翻译; write: write "
    "overwrite save edit touch 写 覆盖; refund: refund issue refunding 退; open: open visit go online 打开 访问; "
    "commit: commit 提交; fetch: open visit fetch call request http"
)
_LINK = late_pattern(r"https?://\S+|[\w.+-]+@[\w-]+\.[\w.-]+")
_PATH = late_pattern(
    r"(?:^|[\s(])(?:(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]*)*|[\w.-]+/[\w./-]*)|(?:^|\s)\.[a-z]{2,6}\b"
    r"|\b[\w-]+\.(?:json|ya?ml|toml|docx|xlsx|lock|md|py|txt|pdf|csv)\b"
)
_ADDRESS = late_pattern(r"[\w.+-]{1,64}@\w")
_SUM = late_pattern(
    r"\b(?:above|over|beyond|exceed\w*) (?:[$€£¥] ?)?\d[\d.,]*k? ?(?:euros?|eur|dollars?|usd|pounds?|yuan)\b"
    r"|\b(?:above|over) [$€£¥]\d"
)
_CHANNEL = late_pattern(r"(?<!\S)#[a-z][\w-]*")
_AT_LAST = {
    "mail": _ADDRESS,
    "web": late_pattern(r"browser|chrome|浏览器"),
    "sql": late_pattern(r"\btables?\b|database|truncate|删表|数据库"),
    "payment": _SUM,
    "chat": _CHANNEL,
    "message": _CHANNEL,
}
_OF_GIT = split("git push rebase commit sudo")
_WORD = late_pattern(r"[a-z]+(?:[-'][a-z]+)*")
_NAME_WORD = late_pattern(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[\u3400-\u9fff]+")
_FILLERS = split(
    "bot tool tools client er or app cli util api server svc service sender new all post delete read send"
    " insert event search page run create draft file move sheet list get set open fetch push rows"
)
_LONGEST_NAME = 40  # characters of a name's word that is looked into


def _both(table: Mapping[str, str]) -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    halves = ((key, *each.split("|")) for key, each in table.items())
    return {
        key: (split(said.replace("_", " ") if "_" not in said else said), split(named)) for key, said, named in halves
    }


_THINGS = {**_both(_STRONG), **_both(_WEAK)}
_ACTS = {key: split(listed) for key, listed in _MORE_ACTS.items()}
_NAMED = frozenset().union(*(named for _, named in _THINGS.values()), FAMILIES)


@dataclass(frozen=True, slots=True, eq=False)
class _Tool:
    name: str
    things: frozenset[str]  # by the words of its name
    acts: frozenset[str]
    words: frozenset[str]
    told: frozenset[str]  # words of its description


def tools_named(
    written: str, texts: Sequence[str], tools: Sequence[ToolSchema], nouns: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    """The tools that a sentence means, in the order of `tools`; empty where it means none.

    `texts`: parts of it, from the demand itself to the whole: the first that means a tool decides. `nouns`: words that
    mean tools, beside the built-in ones: word of a tool's name -> words of a sentence.
    """
    if exact := named_exactly(written, tools):
        return exact
    known = [_profile(tool.name, tool.description) for tool in tools]
    for text in texts:
        if found := _meant(text, known, nouns):
            return found
    return _at_last(texts[0], known) if texts else ()


def _meant(text: str, tools: Sequence[_Tool], nouns: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    things, acts = _said(text)
    forms = _forms(text)
    apart = not any(key in _STRONG and key != "force" and said for key, said in things.items())
    evidence: dict[str, frozenset[str]] = {}
    for tool in tools:
        found = {f"{thing}:{word}" for thing in tool.things for word in things.get(thing, ())}
        strong = any(thing in _STRONG and things.get(thing) for thing in tool.things)
        own = {word for word in forms & tool.words if word not in FAMILIES and word not in _NAMED and len(word) > 2}
        own |= {word for key, said in nouns.items() if key.lower() in tool.words for word in forms & set(said)}
        doing = tool.acts - {"run"} if "shell" in tool.things else tool.acts  # each shell does that
        done = {f"{word}:act" for act in doing for word in acts.get(act, ())}
        telling = apart and any(acts.get(act) for act in tool.acts & _TELLING)
        if strong or own or telling or (found and done):
            evidence[tool.name] = frozenset(found | done | {f"{word}:own" for word in own})
    if not any("force" in word for each in evidence.values() for word in each):
        evidence = {name: each for name, each in evidence.items() if "force" not in _profile(name, "").words}
    return tuple(name for name, each in evidence.items() if not any(each < other for other in evidence.values()))


def _at_last(text: str, tools: Sequence[_Tool]) -> tuple[str, ...]:
    """Where nothing else is meant: a path means files, a program or git a shell, an address mail, a channel chat."""
    lowered = text.lower()
    forms = _forms(lowered)
    meant: set[str] = set()
    if _PATH.search(lowered):
        files = [tool for tool in tools if "file" in tool.things]
        acts = {act for act, words in _said(text)[1].items() if words}
        if found := [tool.name for tool in files if tool.acts & acts] or [tool.name for tool in files]:
            return tuple(found)
        meant.add("shell")
    meant |= {thing for thing, said in _AT_LAST.items() if said.search(lowered)}
    if forms & _OF_GIT or any(looks_like_command(each) for each in _WORD.findall(lowered)):
        meant.add("shell")
    at_last = tuple(tool.name for tool in tools if tool.things & meant)
    if at_last or not forms:
        return at_last
    shared = {tool.name: len(forms & tool.told) for tool in tools}
    most = max(shared.values(), default=0)
    return tuple(name for name, count in shared.items() if count == most) if most >= 2 else ()


def _forms(text: str) -> frozenset[str]:
    words = _WORD.findall(_LINK.sub(" ", text.lower().replace("’", "'")))
    return frozenset(form for word in words for part in (word, *word.split("-")) for form in base_forms(part))


def _said(text: str) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """(thing -> the words that mean it, act -> the words that mean it) of a text."""
    lowered = _LINK.sub(" ", text.lower().replace("’", "'"))
    forms = _forms(lowered)
    chinese = CJK.search(lowered) is not None
    words = _WORD.findall(lowered)
    known = forms | {f"{one}_{next_one}" for one, next_one in itertools.pairwise(words)}

    def hits(said: Iterable[str]) -> frozenset[str]:
        return frozenset(word for word in said if word in known or (chinese and not word.isascii() and word in lowered))

    things = {thing: hits(said) for thing, (said, _) in _THINGS.items()}
    acts = {act: hits(said) for act, said in _ACTS.items()}
    for word in hits(word for word in FAMILIES if len(word) > 1):
        for family in FAMILIES[word]:
            acts[family] = acts.get(family, frozenset()) | {word}
    if _CHANNEL.search(lowered):
        things["chat"] = things["chat"] | {"#"}
    if _ADDRESS.search(text.lower()):
        things["mail_parts"] = things["mail_parts"] | {"@"}
    return things, acts


@lru_cache(maxsize=4096)
def _profile(name: str, description: str) -> _Tool:
    words = frozenset(part for word in _NAME_WORD.findall(name) for part in parts_of_name(word.lower()))
    if name.startswith("@") and words & {"read", "write", "delete"}:
        words |= {"file"}
    things = frozenset(thing for thing, (_, named) in _THINGS.items() if words & named)
    acts = frozenset(family for word in words for form in base_forms(word) for family in FAMILIES.get(form, ()))
    acts |= frozenset(act for act, said in _ACTS.items() if words & said)
    acts |= {"read"} if "cat" in words else set()
    acts -= set() if "payment" in things else {"pay"}
    acts -= {"buy"} if "order" in things else set()
    told = frozenset(
        form for word in _WORD.findall(description[:300].lower()) if len(word) > 3 for form in base_forms(word)
    )
    return _Tool(name, things, acts, words, told)


@lru_cache(maxsize=4096)
def parts_of_name(word: str) -> tuple[str, ...]:
    """The words that a word of a tool's name is joined of, `websearch` of web and search; or itself."""
    if len(word) > _LONGEST_NAME or word in _NAMED or not word.isascii():
        return (word,)
    for cut in range(2, len(word) - 1):
        first, second = word[:cut], word[cut:]
        known = first in _NAMED or second in _NAMED
        if known and {first, second} <= _NAMED | _FILLERS:
            return (first, second)
    return (word,)


def named_exactly(written: str, tools: Sequence[ToolSchema]) -> tuple[str, ...]:
    """The tools whose names a sentence holds, letter for letter."""
    exact = [tool.name for tool in tools if _is_identifier(tool.name) and _holds_name(written, tool.name)]
    exact += [tool.name for tool in tools if tool.name not in exact and _shows_name(written, tool.name)]
    return tuple(exact)


def able_too(demand: str, named: Sequence[str], tools: Sequence[ToolSchema]) -> tuple[str, ...]:
    """The tools beside those `named` that can do what the demand forbids: a shell runs git, and reaches a path."""
    known = [_profile(tool.name, tool.description) for tool in tools]
    meant = frozenset().union(*(tool.words | tool.things for tool in known if tool.name in named))
    able = ("git" in meant) or ("file" in meant and _PATH.search(demand.lower()) is not None)
    return tuple(tool.name for tool in known if able and tool.name not in named and "shell" in tool.things)


def speaks_of_tools(text: str) -> bool:
    """Does a text speak of any thing that tools are for, whether or not there is such a tool?"""
    things, _ = _said(text)
    return any(words for thing, words in things.items() if thing in _STRONG) or _PATH.search(text.lower()) is not None


def _is_identifier(name: str) -> bool:
    return bool(re.search(r"[_\-./:\d]|[a-z][A-Z]", name))


def _holds_name(written: str, name: str) -> bool:
    return name.lower() in written.lower() and bool(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w])", written, re.I))


def _shows_name(written: str, name: str) -> bool:
    """A plain word is a tool's name where it is shown as one: `shell`, the shell tool."""
    lowered = written.lower()
    if name.lower() not in lowered or not ("`" in lowered or "tool" in lowered):
        return False
    shown = re.escape(name.lower())
    return bool(re.search(rf"`{shown}`|\btool [\"'“]?{shown}\b|(?<![\w-]){shown} tool\b", lowered))
