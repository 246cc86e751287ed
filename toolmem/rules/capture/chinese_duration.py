"""How long a Chinese demand holds: for good, or for this one task, object or moment."""

from __future__ import annotations

import re
from enum import IntEnum

from toolmem.rules.capture.reading import Kind


class Strength(IntEnum):
    """What the cue itself says about how long; the weaker it is, the more the object decides."""

    NOW = 0  # 先别
    SOFT = 1  # 不要, 别
    BOUND = 2  # 只能
    FIRM = 3  # 别再, 千万别
    RULE = 4  # 禁止, 必须先
    VERY = 5  # 永远不要, 以后不要


_FOR_GOOD = re.compile(
    r"永远|永久|绝不|绝对|今后|(?:^|[，,。；;！!\s]|请|你|麻烦|那|但|不过|今天|而且|还有|拜托)以后"
    r"|以后(?:请|麻烦)?你?(?:都|也)?(?:别|不|绝|千万|禁|严|一律|永|再)"
    r"|往后|从今|从(?:今天|现在|今日)(?:起|开始)|即日起|将来|一律|每次|每回|每个|每天|每周|每(?:一)?[笔封条次]"
    r"|凡是|随便|擅自|私自|总是|平时|一直|到处|乱(?=[发删改动花用调跑推开订买点碰翻写传装])|长期|一概|下次|(?:不管|无论|不论)"
)
# These bound which things, not for how long: "for the next hour run no queries at all".
_ALL_OF_THEM = re.compile(r"任何|所有")
# A time that comes again and again.
_RECURRING = re.compile(
    r"(?<![今明昨后这本下上])(?:周末|节假日|假期|工作日|(?:非)?工作时间|周[一二三四五六日天]|星期[一二三四五六日天]|晚上|夜里|夜间|半夜|凌晨|清晨|早上|早晨"
    r"|上午|中午|午休|下午|傍晚|下班(?:以后|之后|后|时间)|上班(?:时间|期间)|睡觉|月底|月初|年底)"
)
_UNTIL_DAY = re.compile(r"(?:周|星期)[一二三四五六日天](?:[^，,]{0,6})(?:之前|以前|前)")
_NOW = re.compile(
    r"今天(?!起|开始|以后)|今晚|今早|今日|今夜|明天|后天|现在|目前|眼下|此刻|暂时|暂且|暂不|暂缓|这次|这回|这一次|这一回|本次"
    r"|此次|这趟|这会儿|当前|这两天|这几天|这周|本周|这个月|本月|刚才|等一下|稍等|等等|先(?:别|不|缓|等)"
    r"|接下来|未来[一两几半三\d]|这段时间|一会儿|半小时|几分钟|封网|到时候|好之前|完之前|停一停|停一下|缓一缓|歇一歇"
    r"|直到|等.{1,20}(?:再|之后|以后|后)|期间|的时候先|还没|尚未|改主意"
)
_BEFORE = re.compile(
    r"(?:之前|以前|前)(?:先|都|请|你)*(?:别|不要|不准|不许|不能|不得|勿|禁止)|(?:之前"
    r"|以前)[，,]?.{0,4}(?:别|不要|不许|不准)"
)
_CLASSIFIERS = "封条个单张份趟笔件段篇台家页句场只首本行项位则通步层套辆间节周次批座架"
_THIS_ONE = re.compile(
    rf"[这那该](?:[一两几二三四]?[{_CLASSIFIERS}]|些)(?!频道|仓库|账号|群|项目|种|样|目录"
    rf"|邮箱|人以后)|(?:该|此)(?:邮件|订单|文件|会议|分支|工单|请求|消息|表|单)"
    r"|我的(?:订单|预订|机票|航班|酒店|包裹|快递|预约|申请|草稿)(?!们)"
    r"|第[一二三四五六七八九十百\d]+[段条章页节个封句行]|(?:上面|刚刚?|刚才)(?:那|的)|^(?:把)?(?:它"
    r"|他|她)(?!们)|[发给删改推取消付退订](?:它|他|她)(?!们)"
)
_KIND = re.compile(r"[这那](?:种|样|类|么|些事)")
_ONE_BY_NUMBER = re.compile(
    r"(?:订单|发票|工单|航班|单号|编号|预订|会议|版本|任务|请求|分支|(?<![A-Za-z])(?:PR|MR|issue|case|order|invoice)"
    r"(?![A-Za-z]))\s*(?:号|编号)?\s*[#＃]?\s*[A-Za-z]{0,4}[-_]?\d[\w./-]*"
    r"|\d{3,}\s*号|[#＃]\d+|(?<![\w.])[A-Za-z]{1,5}-?\d{3,}(?![\w.])|(?<![\d/])\d{2,}-\d{3,}|(?<![\w/])v?\d+\.\d+\.\d+",
    re.IGNORECASE,
)
_ONE_FILE = re.compile(
    r"(?<![\w/.*])[\w-]+(?:[.-][\w-]+)*\.(?:[a-z]{2,4}|json|yaml|docx|xlsx|gz)\b(?!/)", re.IGNORECASE
)
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+|https?://\S+|[\w-]+(?:\.[\w-]+)*\.(?:com|cn|org|net|io|example)\b\S*")
_STOP_NOW = re.compile(r"了[\s!！~～吧啊呀]*$")
# A verb alone is about what is at hand; a verb with a kind of thing, 删表, is about all of them.
_BARE = re.compile(r"^\s*(?![删付发推改建买卖][表库钱票]|[删付改建][发文工][票件单])[A-Za-z一-鿿]{0,3}\s*$")


def kind_of(strength: Strength, sentence: str, clause: str, rest: str) -> Kind:
    """ "standing" or "session". `rest` is what follows the cue in its clause."""
    sentence = _ADDRESS.sub(" ", sentence)
    clause = _ADDRESS.sub(" ", clause)
    if strength is Strength.NOW:
        return "session"
    if strength is Strength.VERY:
        return "standing"
    now = _NOW.search(sentence)
    lasting = bool(_FOR_GOOD.search(sentence) or (_ALL_OF_THEM.search(sentence) and not now))
    if not now and _RECURRING.search(clause) and not _UNTIL_DAY.search(clause) and not _THIS_ONE.search(sentence):
        lasting = True
    if now and not lasting:
        return "session"
    if lasting:
        return "standing"
    one = bool(_THIS_ONE.search(clause) or _ONE_BY_NUMBER.search(clause)) and not _KIND.search(clause)
    if strength is Strength.RULE:
        return "session" if one and not re.search("之前|以前|前", clause) else "standing"
    if one or (strength <= Strength.FIRM and _BEFORE.search(sentence) and strength is not Strength.BOUND):
        return "session"
    if strength is not Strength.SOFT:
        return "standing"
    if _THIS_ONE.search(sentence) or _ONE_BY_NUMBER.search(sentence) or _ONE_FILE.search(clause):
        return "session"
    return "session" if _STOP_NOW.search(clause) or _BARE.match(rest) else "standing"
