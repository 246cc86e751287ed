"""Chinese sentences: is this a demand on what the agent does, and for how long?

A sentence is read clause by clause. A cue (永远不要, 别, 禁止, 只能, 必须先 ...) counts where nobody but the agent can
be its subject, and where its characters are not part of another word (别墅, 不要紧, 特别).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from toolmem.rules.chinese_duration import Strength, kind_of
from toolmem.rules.reading import Reading, combined
from toolmem.rules.sentences import Sentence


@dataclass(frozen=True, slots=True)
class _Cue:
    pattern: re.Pattern[str]
    strength: Strength
    needs_tool: bool = False


# A bare 不 forbids only right before what an agent does: 永远不知道, 绝对不是 are statements.
_DOES = (
    r"(?=(?:直接|自动|自己|私自|擅自|随便|主动|轻易|单独|偷偷|随意|再|去|敢|上)*(?:给|往|向|在|把|对|跟|替|帮|发|删|用|改|动|碰|推|付|订|搜|查|读|看|翻|跑|执行|部署|提交|合并|调用|下载|上传|安装|买|卖|打|拍|放|上线|生产"
    r"|退|取消|打开|覆盖|写|转|建|登录|访问|联系|分享|透露))"
)
_NOT = rf"(?:不要|别|不准|不许|不能|不得|不可以|不可(?!能)|不允许|禁止|勿|不(?:再)?{_DOES})"
# Words whose characters look like a cue: 特别, 别墅, 不要紧, 要不要, "not accurate".
_BIE = (
    r"(?<![特分区级性识告类个鉴辨差派道离送甄永久阔])别(?!墅|人|名|处|致|扭|克|样|针|提|称|号|字|国|管|看"
    r"|说|的|家|院|离|具|出心裁|急|担心|客气|忘|犹豫|介意|生气|闹|逗|谢|怕|慌|紧张|放弃|想|误会|理|难过"
    r"|灰心|在意|见怪|激动|废话|啰嗦|骗|装|傻|吵|搞错|弄错|看错|记错|拖|等我)"
)
_IDLE = (
    r"(?!紧|脸|钱|担心|着急|急|客气|忘|误会|犹豫|介意|生气|紧张|怕|害怕|放弃|慌|谢|见怪|灰心|难过|太|命"
    r"|说|觉得|以为|认为|想|这么想|当真|在意|激动|骗|误以为|搞错|弄错|看错|记错|编造|拖|等我)"
)
_BUYAO = r"(?<![要想是需非])不要(?!了)" + _IDLE
_WITHOUT_LEAVE = (
    r"(?:未经|没有?经过|没有?得到|没有|不经|没)(?:过)?(?:我|我们|本人)?(?:的)?(?:明确|书面"
    r"|事先)?(?:同意|允许|许可|批准|确认|授权|点头|签字|过目)"
)
_ASK_ME = (
    r"(?:.{0,12}(?:给我看|让我看|让我过目|发给我|给我确认|告诉我|通知我)|问我|问一?下我|问问我|问过我|经过?我|跟我说|和我说|跟我确认|和我确认|向我确认|找我确认|通知我|告诉我|给我看"
    r"|让我看|让我过目|征得我|征求我|得到我|我同意|我确认|我批准"
    r"|请示我?|我点头|等我|我来确认|让我确认|先确认|获得我|取得我|跟我打招呼|备份|测试|检查|确认)"
)

_CUES = (
    _Cue(re.compile(r"(?:永远|永久|这辈子|一辈子)(?:都|也|再|请|你)*" + _NOT), Strength.VERY),
    _Cue(re.compile(r"绝对?" + _NOT), Strength.VERY),
    _Cue(
        re.compile(
            r"(?:再也|(?:不管|无论|不论)[^，,。]{1,10}?都|任何时候都?|无论如何都?|无论何时都?|不管怎样都?|不管什么时候都?|说什么都?|一律"
            r"|从今以后|今后|以后|往后|从现在起|从现在开始|将来)(?:也|都|就|请|你|再)*"
            + _NOT
            + "(?!用|必|需|想|会|知|客气|急|紧|担心)"
        ),
        Strength.VERY,
    ),
    _Cue(
        re.compile(
            rf"(?:以后|今后|往后|从今以后|从现在起|将来)(?:(?!我|他|她|它|谁"
            rf"|大家).){{1,14}}?{_NOT}(?!用|必|需|想|会|知|客气|急|紧|担心)"
        ),
        Strength.VERY,
    ),
    _Cue(re.compile(r"千万(?:别|不要|不能|不可|不得)" + _IDLE), Strength.FIRM),
    _Cue(re.compile(r"(?<![要想是])(?:不要|不准|不许|不能|不得|不可以|不可)再" + _IDLE), Strength.FIRM),
    _Cue(re.compile(_BIE.replace("别(?!", "别再(?!")), Strength.FIRM),
    _Cue(re.compile(r"(?:严禁|禁止|(?<!是)不许|不得(?!不|了|已|而)|不允许|请勿|切勿|休想)"), Strength.RULE),
    _Cue(
        re.compile(r"(?<=[^\s，。：])(?:是|属于|被)(?:绝对|严格|严令|明令|完全)?禁止(?:的|$)"),
        Strength.RULE,
        needs_tool=True,
    ),
    _Cue(re.compile(r"(?<=[^\s，。：])(?:都不行|也不行|不行)$|谁都不行"), Strength.RULE, needs_tool=True),
    _Cue(re.compile(r"不准(?!确|时|的|了|点|，|$)"), Strength.RULE),
    _Cue(
        re.compile(
            r"(?:^|你|也|都|就|任何.{1,12}?|所有.{1,12}?|未经.{1,12}?)不(?:能|可以)(?!用$|用了|够|吗|么|说|怪|算|$)"
        ),
        Strength.SOFT,
        needs_tool=True,
    ),
    _Cue(re.compile(_WITHOUT_LEAVE + r".{0,20}?" + _NOT), Strength.RULE),
    _Cue(
        re.compile(
            r"(?:没有?|未)(?!你|必|问题|关系|事|人|时间)[^，,。]{1,10}?(?:就|也|都|则"
            r"|的话)?(?:不能|不许|不准|不得|不可以|不要|别|禁止)"
        ),
        Strength.RULE,
        needs_tool=True,
    ),
    _Cue(re.compile(r"(?:不经|未经|没经|不问)我.{0,6}(?:就|便|擅自)"), Strength.RULE, needs_tool=True),
    _Cue(
        re.compile(
            r"停止(?=自动|使用|再|给|往|向|在|对|把|替|为我|用(?!户)|发(?!动|电|烧)|搜|推送|删|上网|未经|擅自|私自|乱)"
        ),
        Strength.FIRM,
    ),
    _Cue(re.compile(r"避免(?=.*[一-鿿]{2})"), Strength.RULE, needs_tool=True),
    _Cue(
        re.compile(r"(?:只能|只准|只许|只可以|只允许|仅限|仅能|仅可|只可(?!惜|是)|仅允许|最多只能|顶多)"),
        Strength.BOUND,
    ),
    # 建工单之前必须先查重; 一定要主管批准以后才能退款
    _Cue(
        re.compile(r"(?:之前|以前|前)[，,]?[^，,]{0,6}(?:必须|务必|一定要?|都要|都得|应当)先?(?!等)"),
        Strength.RULE,
        needs_tool=True,
    ),
    _Cue(
        re.compile(
            r"(?:必须|务必|一定要|一定得|都要|都得|只有)[^，,]{0,12}(?:批准|同意|签字|确认|审核|审批|核准|许可|授权|复核|点头)"
            r"(?:过)?(?:了)?(?:以后|之后|后)?(?:才能|才可以?|才准|才行|再|方可)"
        ),
        Strength.RULE,
        needs_tool=True,
    ),
    _Cue(
        re.compile(r"(?:最多|不得超过|不能超过|不要超过)(?=.*[\d一二两三四五六七八九十百千])"),
        Strength.BOUND,
        needs_tool=True,
    ),
    _Cue(
        re.compile(
            r"^(?:请|你|以后|今后|平时|都|就)*只(?:用|在|往|向|给|读|查|发|写|订|跑|执行|访问|连|操作|搜|推|翻译|部署|提交|合并|调用|走|接受?|退|付|装)"
        ),
        Strength.BOUND,
        needs_tool=True,
    ),
    _Cue(
        re.compile(
            r"(?:只有|必须|得|要|需要|除非|经过?|征得|得到|获得|问过|等)(?:.{0,4}?)(?:我"
            r"|我们)(?:.{0,8}?)(?:才能|才可以?|才准|才行|再|之后再|以后再|方可)"
        ),
        Strength.RULE,
    ),
    _Cue(
        re.compile(
            r"先(?:.{0,4}?)(?:问|跟|和|向|经|征|给|让|通知|告诉|请示|等)(?:.{0,2}?)我.{0,8}?(?:再|才|之后|然后)"
        ),
        Strength.RULE,
        needs_tool=True,
    ),
    _Cue(
        re.compile(
            r"(?:必须|务必|一定要?|都要|都得|得|要|需要|应该|应当|请|都|记得)(?:先|事先|提前)(?:.{0,6}?)" + _ASK_ME
        ),
        Strength.RULE,
    ),
    _Cue(
        re.compile(
            r"(?:之前|以前|前)[，,]?(?:你|请|都|也)*(?:必须|务必|一定要?|都要|都得|得|要|需要"
            r"|应该|应当|请|先|都)+(?:先|事先|提前)?(?:.{0,6}?)" + _ASK_ME
        ),
        Strength.RULE,
    ),
    _Cue(
        re.compile(
            r"(?:必须|务必|一定要|都要|都得|需要|得)(?:先)?(?:经过?|征得|得到|获得|取得|征求|有)(?:我|我们|本人)"
        ),
        Strength.RULE,
    ),
    _Cue(re.compile(r"先(?:别|不要|不能|勿|不|暂停|停一停|停一下|停下来|等等|缓一缓)(?!" + "说|急|管|用|走|忙)"), Strength.NOW),
    _Cue(
        re.compile(
            r"(?:我|我们)(?:真的|实在|很|并|也|可|都|永远|绝对|再也|再)*(?:不想|不希望|不愿意?"
            r"|不喜欢|不允许|不同意|不接受|不准|不许|不要)(?:再|看到|看见|让|有|听到)?(?:你|被"
            r"|任何人|谁)"
        ),
        Strength.BOUND,
    ),
    _Cue(
        re.compile(r"(?:我|我们)(?:永远|绝对|再也)(?:不想|不希望|不愿意?)(?:再)?(?:你|被|看到|收到|接到)"),
        Strength.VERY,
    ),
    _Cue(re.compile(r"(?:一律|统统|全都?|通通)(?:不|别|禁)"), Strength.VERY),
    _Cue(re.compile(r"(?:少|甭|莫要|莫)(?=给|往|在|用|发|删|动|碰|乱)"), Strength.SOFT, needs_tool=True),
    _Cue(re.compile(_BUYAO), Strength.SOFT),
    _Cue(re.compile(_BIE + "(?!再)"), Strength.SOFT),
    _Cue(re.compile(r"(?<![请切])勿(?!忘|念|扰|谓)"), Strength.SOFT),
)

_CLAUSE = re.compile(r"[^，,；;：:、。！!？?…()（）\ue000]+")
_QUESTION = re.compile(
    r"(?:吗|么|呢)[\s。！!~～]*$|^\s*(?:那|所以|请问|但|可|你说)*(?:为什么|为何|怎么|什么|哪"
    r"|谁|是不是|能不能|可不可以|有没有|要不要|会不会|多少|几)"
)
_POLITE = re.compile(r"(?:能不能|可不可以|可以|能|可否|能否)(?:请|麻烦)?(?:你)?(?:别|不要|停止)")
_TAG = re.compile(
    r"[，,\s]*(?:好吗|好不好|好嘛|行吗|行不行|可以吗|知道吗|明白吗|懂吗|听到没有?|听见没有?|记住了吗|懂了吗"
    r"|明白了吗|了解吗|OK吗?|ok吗?|好么|成吗)\s*[?？。！!]*$"
)
# Somebody else is told not to: 让他不要, 告诉大家别.
_TOLD_TO = re.compile(
    r"(?:让|叫|告诉|通知|提醒|劝|要求|嘱咐|吩咐|请|求|命令|转告|警告|建议|说明|注明|写明|强调|声明|规定)(?!我|你|助手|您)[^，,。你我]{1,10}?$"
    r"|(?:跟|对|和)(?!我|你)[^，,。]{1,6}(?:说|讲)$|(?:提醒|叫|劝|告诉|警告)我"
)
_OTHER_SUBJECT = re.compile(
    r"(?:我|我们|咱们?|他|她|它|他们|她们|它们|大家|人们|有人|别人|客户|老板|经理|同事|孩子|朋友|妈妈|爸爸"
    r"|老师|医生|系统|程序|页面|网站|公司|对方|他人|人家|店家|商家|银行|谁|用户|顾客|员工|实习生|学生|租客|房东|司机|患者|病人|成员|开发者|新人|邻居|家长|会员|乘客"
    r"|客服|访客|游客|买家|卖家|读者|观众|玩家|父母|老婆|老公|丈夫|妻子|儿子|女儿|大夫|领导|房客|经理人|浏览器插件)"
    r"(?:们|也|都|就|还|从来|一般|平时|可|真|又|已经|一直|从|好像|其实|现在|今天|最近|目前|暂时|反正|确实"
    r"|总|总是|才|实在|真的|这次|本来|坚决|根本|们都)*$"
)
_LOOKED_FOR = re.compile(
    r"\s*(?:请|帮我|麻烦|给我)*(?:找|推荐|列出|挑|选|看看|有没有|查一下|搜一下)(?!不)"
)  # 找一家不要预约的餐厅
_AGENT = re.compile(r"(?:你|您|助手|机器人|AI|ai)")
_SHOWN = re.compile(
    r"(?:(?:错误|报错|警告|日志|提示|error|Error|ERROR|warning)\s*[\w.#-]*|说|写道|写着|写|发|回复|回|翻译成?[一-鿿]{0,3}|译成?[一-鿿]{0,3}|告诉[一-鿿]{1,4}"
    r"|标题|正文|内容|题为|提示|报错|错误|日志|警告|规定|公告|通知|引用|加一句|加一条|条款|原文|原话"
    r"|句子|一句话|文案|短信|邮件|消息|备注|注释|歌词|台词|标语|牌子|弹窗|弹出|显示|输出|搜索|搜|查找|查一?下"
    r"|叫做|名为|如下|附言|签名|改成|改为|换成|替换成)\s*$"
)
_OWN_WORDS = re.compile(
    r"(?:我(?:再)?(?:说|重申|强调|告诉你|要求)(?:过|一遍|一次|清楚)?|记住|注意|听好|再说一遍|规定|提醒你|警告你)\s*$"
)
_TASK = re.compile(
    r"^\s*(?:请|帮我|麻烦|帮忙|给我)?(?:写|翻译|把.{1,40}?(?:翻译|改|换|发|写)"
    r"|在\s*\S{1,20}\s*(?:里|上|中)?(?:发|写|加|贴)|给.{1,10}?发|回复|列出|查一?下|找"
    r"|搜|统计|续写|改写|润色|总结)"
)
_REVOKED = re.compile(
    r"(?:不用|不必|无需|无须|不需要|用不着|取消(?:之前|我)的?(?:规定|限制|要求)|忘掉|忘了我说"
    r"|忽略(?:之前|我)|收回(?:之前|我)|可以再|又可以)"
)
_STYLE = re.compile(
    r"表情|emoji|表格|语气|(?:用)?(?:英文|中文|英语|汉语|日语|德语|法语)(?:回答|回复|说|写"
    r"|交流)?$|(?:英文|中文|英语|日语|德语|法语)(?:回答|回复|说|写|交流)|回答|称呼|啰嗦|罗嗦|道歉|标点"
    r"|废话|markdown|列表|加粗|粗体|标题|口语|说话"
    r"|字数|敬语|叫我|感叹号|长篇|客套|套话|成语|缩写|专业术语|术语|网络用语|总结|开场白|重复|解释|说教|段落"
    r"|分点|编号|您"
)
# What an agent can do, whether or not a tool is named.
_ACTS = re.compile(
    r"发|送|寄|读|看|翻|查|搜|删|改|写|存|加|建|排|订|买|付|退|花|动|碰|转|推|拉|合并|提交|部署|上线"
    r"|发布|执行|跑|运行|操作|处理|打开|访问|登录|点|调用|请求|安装|下载|上传|分享"
    r"|告诉|透露|泄露|泄漏|公开|联系|打电话|打扰|签|答应|同意|取消|预订|预约|邀请|安排|翻译|覆盖|清空|移动"
    r"|复制|重启|关闭|关掉|停|启动|创建|修改|更新|使用|用|做|干|决定|行动|擅自|自动|自作主张|发生|出现|代替"
    r"|替我|给我|泄|授权|扣|刷|充|借|转账|建工单|拍|放音乐|播放|解除|解锁|锁|租|导出|导入|冻结|调(?!皮|整心态)|开(?!玩笑|心|始|会|车|口)"
    r"|雇|捐|抄|注册|注销|登记|编辑|重命名|清理|抹|格式化|强推"
)
_AGAIN_LIKE_THAT = re.compile(r"再(?:也)?(?:不要|别|不许|不准)?(?:这样|这么|那样|那么|犯|干这种|有下次)|(?:不要|别|不许|不准|不能)再(?:这样|这么|那样|犯)")
# What is only supposed, and the text that a task is to write: 写一封信，说明用户不要 ...
_SUPPOSED = re.compile(
    r"\s*(?:那|我们?|咱们?)?(?:假如|假设|假使|如果|要是|设想|想象)(?:一下)?[，,：:]?\s*(?:我|有人|用户|客户|老板)(?:说|告诉|要求|命令|规定|让|叫)"
)
_ITS_TEXT = re.compile(r"\s*(?:请)?(?:并|就|要|里面?|内容)?(?:说明|注明|写明|强调|声明|告诉|提醒|通知|内容是|内容为|意思是|大意|表示|说|叫|让)(?!我)")
_IF = re.compile(r"^\s*(?:如果|要是|假如|万一|若|倘若|假设)")


def read_chinese(sentence: Sentence) -> Reading | None:
    """The demand of a Chinese sentence, or None."""
    text = _TAG.sub("", sentence.masked)
    asked = (sentence.question and text == sentence.masked) or bool(_QUESTION.search(text))
    if asked and not _POLITE.search(text):
        return None
    return combined(list(_readings(text)))


def opens_shown_chinese(lead: str) -> bool:
    """Does what stands before a colon open a text to be written, or somebody else's words?"""
    return bool(_TASK.match(lead) or (_SHOWN.search(lead) and not _OWN_WORDS.search(lead)))


def _readings(text: str) -> Iterator[Reading]:
    if _SUPPOSED.match(text):
        return
    condition = task = False
    for clause in _CLAUSE.finditer(text):
        words = clause[0]
        if task and _ITS_TEXT.match(words):
            return
        task = task or bool(_TASK.match(words))
        condition = condition or bool(_IF.match(words))
        if _behind_shown_colon(text, clause.start()):
            return
        if _REVOKED.search(words):
            continue
        for cue in _CUES:
            match = cue.pattern.search(words)
            if match is None or not _to_the_agent(words, match):
                continue
            if condition and cue.strength in (Strength.SOFT, Strength.NOW):
                continue  # 如果找不到，不要放弃: about this one case
            rest = words[match.end() :]
            again = cue.strength >= Strength.FIRM and bool(_AGAIN_LIKE_THAT.search(words))
            needs_tool = cue.needs_tool or bool(_STYLE.search(words)) or not (_ACTS.search(words) or again)
            needs_tool = needs_tool or (
                cue.strength in (Strength.BOUND, Strength.RULE) and not _addressed(words, match)
            )
            kind = kind_of(cue.strength, text, words, rest)
            topic = _topic_before(text, clause.start())
            by_itself = needs_tool and cue.strength in (Strength.SOFT, Strength.FIRM) and topic == clause.start()
            yield Reading(kind, topic, clause.start() + match.start(), clause.end(), needs_tool, by_itself)


def _topic_before(text: str, position: int) -> int:
    """Where the topic of a clause begins that stands before a comma: 超过一百元的退款，不许 ..."""
    before = re.search(r"(?:^|[。！!？?；;])([^，,。！!？?；;]{2,24}的[^，,。！!？?；;的]{0,8})[，,]\s*$", text[:position])
    return before.start(1) if before is not None and not _NOT_A_TOPIC.search(before[1]) else position


_NOT_A_TOPIC = re.compile(r"我|他|她|是|了|有|谢|好的|行的|可以的|在")


def _behind_shown_colon(text: str, position: int) -> bool:
    return any(
        opens_shown_chinese(text[: colon.start()]) for colon in re.finditer(r"：|:(?=\s|$|[一-鿿])", text[:position])
    )


def _addressed(words: str, match: re.Match[str]) -> bool:
    """Nothing stands before a ban that could make it a fact: 酒店禁止带宠物, 会议只能改到下周."""
    before = words[: match.start()].strip()
    return not before or bool(
        _AGENT.search(before)
        or _ACTS.search(before)
        or re.search(r"任何|所有|一律|每|以后|今后|凡是|这种|没有", before)
    )


def _to_the_agent(words: str, match: re.Match[str]) -> bool:
    """Nobody else is the subject, and nobody else is told."""
    before = words[: match.start()].rstrip()
    if match[0].startswith("我") or re.search(r"(?:谁|任何人)(?:都|也)$", words[: match.start()]):
        return True
    if match[0].startswith(("只", "最多")) and words.rstrip().endswith("了"):
        return False  # 只能等了: how things stand
    if re.search(r"(?:就|也|都)不(?:能|可以)$", match[0]) and words.rstrip().endswith("了"):
        return False  # 超过一天就不能删了
    before = re.sub(r"(?:请|麻烦|拜托|务必|也|都|就|再|还|绝对|一定)+$", "", before) or before
    if (
        _LOOKED_FOR.match(before)
        or _TOLD_TO.search(before)
        or re.search(r"(?:说|写着|规定|显示|提示|是|有|找|得|没|像|从来|从)$", before)
    ):
        return False
    return not _OTHER_SUBJECT.search(before) or bool(_AGENT.search(before[-3:]))
