"""Chinese sentences: is this a demand on what the agent does, and for how long?

A sentence is read clause by clause. A cue (永远不要, 别, 禁止, 只能, 必须先 ...) counts where nobody but the agent can
be its subject, and where its characters are not part of another word (别墅, 不要紧, 特别).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolmem.rules.capture.chinese_cues import CUES
from toolmem.rules.capture.chinese_duration import Strength, kind_of
from toolmem.rules.capture.reading import Reading, combined
from toolmem.rules.capture.sentences import Sentence

_CLAUSE = re.compile(r"[^，,；;：:、。！!？?…()（）\ue000]+")
_QUESTION = re.compile(
    r"(?:吗|么|呢)[\s。！!~～]*$|^\s*(?:那|所以|请问|但|可|你说)*(?:为什么|为何|怎么|如何|怎样|咋|什么|哪"
    r"|谁|是不是|能不能|可不可以|有没有|要不要|会不会|多少|几)"
    r"|为什么|为何|凭什么|为啥|哪[年天里个些]|什么时候|多久|是什么意思|啥意思|怎么(?:开|办|翻|解|回(?!事了)|写|用|处理|设|关|弄|译)"
)
_POLITE = re.compile(r"(?:能不能|可不可以|可以|能|可否|能否)(?:请|麻烦)?(?:你)?(?:别|不要|停止)")
_TAG = re.compile(
    r"[，,\s]*(?:好吗|好不好|好嘛|行吗|行不行|可以吗|知道吗|明白吗|懂吗|听到没有?|听见没有?|记住了吗|懂了吗"
    r"|明白了吗|了解吗|OK吗?|ok吗?|好么|成吗)\s*[?？。！!]*$"
)
# Somebody else is told not to: 让他不要, 告诉大家别.
_TOLD_TO = re.compile(
    r"(?:让|叫|告诉|通知|提醒|劝|要求|嘱咐|吩咐|请|求|(?<!终端)(?<![条个些类])命令(?!执行|行|的)|转告|警告|建议|说明|注明|写明|强调|声明|规定)(?!我|你|助手"
    r"|您)[^，,。你我]{1,10}?$"
    r"|(?:跟|对|和)(?!我|你)[^，,。]{1,6}(?:说|讲)$|(?:提醒|叫|劝|告诉|警告)我"
)
_OTHER_SUBJECT = re.compile(
    r"(?:我|我们|咱们?|他|她|它|他们|她们|它们|大家|人们|有人|别人|客户|老板|经理|同事|孩子|朋友|妈妈|爸爸"
    r"|老师|医生|系统|程序|页面|网站|公司|对方|他人|人家|店家|商家|银行|谁|用户|顾客|员工|实习生|学生|租客|房东|司机|患者|病人|成员|开发者|新人|邻居|家长|会员|乘客"
    r"|客服|访客|游客|买家|卖家|读者|观众|玩家|父母|老婆|老公|丈夫|妻子|儿子|女儿|大夫|领导|房客|经理人|浏览器插件)"
    r"(?:们|也|都|就|还|从来|一般|平时|可|真|又|已经|一直|从|好像|其实|现在|今天|最近|目前|暂时|反正|确实"
    r"|总|总是|才|实在|真的|这次|本来|坚决|根本|们都)*$"
)
_WITH_FEATURE = re.compile(r"(?:订|买|找|选|来|要|租|约|点|挑|推荐|换)[一两几]?[个张间家辆班部份杯碗]?$")
_LOOKED_FOR = re.compile(
    r"\s*(?:请|帮我|麻烦|给我)*(?:找|推荐|列出|挑|选|看看|有没有|查一下|搜一下)(?!不)"
)  # 找一家不要预约的餐厅
_AGENT = re.compile(r"(?:你|您|助手|机器人|AI|ai)")
_SHOWN = re.compile(
    r"(?:来信|留言|反馈|投诉|评论|来邮件|群里说|(?:错误|报错|警告|日志|提示|error|Error|ERROR|warning)\s*[\w.#-]*|说|写道|写着|写|发|回复|回"
    r"|翻译成?[一-鿿]{0,3}|译成?[一-鿿]{0,3}|告诉[一-鿿]{1,4}"
    r"|标题|正文|内容|题为|提示|报错|错误|日志|警告|规定|公告|通知|引用|加一句|加一条|条款|原文|原话"
    r"|句子|一句话|文案|短信|邮件|消息|备注|注释|歌词|台词|标语|牌子|弹窗|弹出|显示|输出|搜索|搜|查找|查一?下"
    r"|叫做|名为|附言|签名|改成|改为|换成|替换成)\s*$"
)
_OWN_WORDS = re.compile(
    r"(?:我(?:再|要|想|忘了|还要|补充)?(?:说|重申|强调|告诉你|要求)(?:过|一遍|一次|清楚)?|记住|注意|听好|再说一遍|规定|提醒你|警告你)\s*$"
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
    r"|分点|编号|您|写得|太长|太短|太正式|太啰嗦|太多字|(?:英文|中文|英语|汉语|日语|德语|法语|普通话|粤语)(?:回|答|写|聊|讲)"
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
_AGAIN_LIKE_THAT = re.compile(
    r"再(?:也)?(?:不要|别|不许|不准)?(?:这样|这么|那样|那么|犯|干这种|有下次)|(?:不要|别|不许|不准|不能)再(?:这样|这么|那样|犯)"
)
# What is only supposed, and the text that a task is to write: 写一封信，说明用户不要 ...
_SUPPOSED = re.compile(
    r"\s*(?:那|我们?|咱们?)?(?:假如|假设|假使|如果|要是|设想|想象)(?:一下)?[，,：:]?\s*(?:我|有人|用户|客户|老板)(?:说|告诉|要求|命令|规定|让|叫)"
)
_SPEC = re.compile(
    r"\s*(?:请|帮我|麻烦|帮忙|给我)*(?:写|实现|开发|做|设计|加|添加|生成|编)(?:一?[个段下条份])?[^，,]{0,8}"
    r"(?:脚本|程序|代码|函数|方法|逻辑|功能|检查|测试|页面|按钮|规则|网站|爬虫|插件|过滤器)"
)
_ASKED = re.compile(r"(?<![好行])(?<!可以)(?<!知道)(?<!明白)(?<!懂)(?:吗|么)\s*$")
_FAILED = re.compile(r"报错|提示|显示|权限不足|失败|出错|怎么回事|系统限制|系统不")
_TELL_ME = re.compile(r"告诉我|通知我|发给我|给我看$")
# What others say or lay down, said afterwards: ..., 商家这么说的; ..., 这是系统限制.
_TOLD_AFTER = re.compile(
    r"[，,](?:这是)?(?:他们?|她们?|商家|店家|卖家|客服|网上|网站|官网|系统|平台|航空公司|航司|酒店|银行|对方|文档|说明书|合同|法律)"
    r"(?:里|上)?(?:的?(?:限制|规定|要求|政策)|(?:都|是|也)?(?:这么|这样)?(?:说|写|讲|规定)(?:的|着)?)[\s。！!~～]*$|[，,](?:据说|听说)的?[\s。！!]*$"
)
_UNABLE = re.compile(r"(?:但是?|不过|可是)?不(?:能|可以)$")
_SET_AGAINST = re.compile(r"可以|的[，,]\s*$|随便")  # 文件可以看，不能删
_ITS_TEXT = re.compile(
    r"\s*(?:请)?(?:并|就|要|里面?|内容)?(?:说明|注明|写明|强调|声明|告诉|提醒|通知|内容是|内容为|意思是|大意|表示|说|叫|让)(?!我)"
)
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
    if _SUPPOSED.match(text) or _TOLD_AFTER.search(text):
        return
    condition = task = spec = False
    for clause in _CLAUSE.finditer(text):
        words = clause[0]
        if task and _ITS_TEXT.match(words):
            return
        if spec and not _AGENT.search(words):
            return
        task = task or bool(_TASK.match(words))
        spec = spec or bool(_SPEC.match(words))
        condition = condition or bool(_IF.match(words))
        if _behind_shown_colon(text, clause.start()):
            return
        if _REVOKED.search(words) or _ASKED.search(words):
            continue
        for cue in CUES:
            match = cue.pattern.search(words)
            if match is None or not _to_the_agent(words, match):
                continue
            if _UNABLE.search(match[0]) and _FAILED.search(text):
                continue
            if _UNABLE.match(match[0]) and clause.start() > 0 and not _SET_AGAINST.search(text[: clause.start()]):
                continue  # 文件太大了，不能用邮件发: a fact, not a ban
            if condition and cue.strength in (Strength.SOFT, Strength.NOW):
                continue  # 如果找不到，不要放弃: about this one case
            rest = words[match.end() :]
            again = cue.strength >= Strength.FIRM and bool(_AGAIN_LIKE_THAT.search(words))
            needs_tool = cue.needs_tool or bool(_STYLE.search(words)) or not (_ACTS.search(words) or again)
            needs_tool = needs_tool or (
                cue.strength in (Strength.BOUND, Strength.RULE) and not _addressed(words, match)
            )
            if _TELL_ME.search(match[0]) and not re.search(r"前|才|再|每|都", words):
                needs_tool = True  # 你得先告诉我价格
            kind = kind_of(cue.strength, text, words, rest)
            if cue.strength is Strength.SOFT and _corrected(rest, text[clause.end() :]):
                kind = "session"
            topic = _topic_before(text, clause.start())
            by_itself = needs_tool and cue.strength in (Strength.SOFT, Strength.FIRM) and topic == clause.start()
            by_itself = by_itself and not _SET_AGAINST.search(text[: clause.start()])
            yield Reading(kind, topic, clause.start() + match.start(), clause.end(), needs_tool, by_itself)


def _corrected(forbidden: str, following: str) -> bool:
    """不要安排在三号会议室，安排在五号: how this one thing is to be done instead."""
    verb = re.match(r"\s*([一-鿿]{2})", forbidden)
    return verb is not None and bool(re.match(rf"[，,]\s*(?:就|请|要|给我|而是)?(?:{verb[1]}|换|改)", following))


def _topic_before(text: str, position: int) -> int:
    """Where the topic of a clause begins that stands before a comma: 超过一百元的退款，不许 ..."""
    before = re.search(
        r"(?:^|[。！!？?；;])([^，,。！!？?；;]{2,24}的[^，,。！!？?；;的]{0,8})[，,]\s*$", text[:position]
    )
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
    if _WITH_FEATURE.search(before) and re.search(r"的[^，,]{1,6}$", words[match.end() :]):
        return False  # 订一张不要靠窗的票
    before = re.sub(r"(?:请|麻烦|拜托|务必|也|都|就|再|还|绝对|一定)+$", "", before) or before
    if (
        _LOOKED_FOR.match(before)
        or _TOLD_TO.search(before)
        or re.search(r"(?:说|写着|规定|显示|提示|是|有|找|得|没|像|从来|从)$", before)
    ):
        return False
    return not _OTHER_SUBJECT.search(before) or bool(_AGENT.search(before[-3:]))
