"""The forms in which a Chinese sentence forbids or bounds something."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolmem.rules.capture.chinese_duration import Strength


@dataclass(frozen=True, slots=True)
class Cue:
    """A form that forbids or bounds."""

    pattern: re.Pattern[str]
    strength: Strength
    needs_tool: bool = False


# A bare 不 forbids only right before what an agent does: 永远不知道, 绝对不是 are statements.
_DOES = (
    r"(?=(?:直接|自动|自己|私自|擅自|随便|主动|轻易|单独|偷偷|随意|再|去|敢|上)*(?:给|往|向|在|把|对|跟|替|帮|发|删|用|改|动|碰|推|付|订|搜|查|读|看|翻|跑|执行|部署|提交|合并"
    r"|调用|下载|上传|安装|买|卖|打|拍|放|上线|生产"
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
    r"|说|觉得|以为|认为|想|这么想|当真|在意|激动|骗|误以为|搞错|弄错|看错|记错|编造|拖|等我|错过|漏|迟到|误机|丢|停(?![止用掉在])|太[早晚])"
)
_BUYAO = r"(?<![要想是需非])不要(?!了)" + _IDLE
_WITHOUT_LEAVE = (
    r"(?:未经|没有?经过|没有?得到|没有|不经|没)(?:过)?(?:我|我们|本人)?(?:的)?(?:明确|书面"
    r"|事先)?(?:同意|允许|许可|批准|确认|授权|点头|签字|过目)"
)
_ASK_ME = (
    r"(?:.{0,12}(?:给我看|让我看|让我.{0,2}(?:过目|审|检查|确认|核对|过一遍)|发给我|给我.{0,2}(?:确认|审|检查|核对|过目)|告诉我|通知我)|问我|问一?下我|问问我|问过我|经过?我"
    r"|跟我说|和我说|跟我确认|和我确认|向我确认|找我确认|通知我|告诉我|给我看"
    r"|让我看|让我过目|征得我|征求我|得到我|我同意|我确认|我批准"
    r"|请示我?|我点头|等我|我来确认|让我确认|先确认|获得我|取得我|跟我打招呼|备份|测试|检查|确认)"
)

CUES: tuple[Cue, ...] = (
    Cue(re.compile(r"(?:永远|永久|这辈子|一辈子)(?:都|也|再|请|你)*" + _NOT), Strength.VERY),
    Cue(re.compile(r"(?:绝对?|坚决)" + _NOT), Strength.VERY),
    Cue(
        re.compile(
            r"(?:再也|(?:不管|无论|不论)[^，,。]{1,10}?都|任何时候都?|无论如何都?|无论何时都?|不管怎样都?|不管什么时候都?|说什么都?|一律"
            r"|从今以后|今后|以后|往后|从现在起|从现在开始|将来)(?:也|都|就|请|你|再)*"
            + _NOT
            + "(?!用|必|需|想|会|知|客气|急|紧|担心)"
        ),
        Strength.VERY,
    ),
    Cue(
        re.compile(
            rf"(?:以后|今后|往后|从今以后|从现在起|将来)(?:(?!我|他|她|它|谁"
            rf"|大家).){{1,14}}?{_NOT}(?!用|必|需|想|会|知|客气|急|紧|担心)"
        ),
        Strength.VERY,
    ),
    Cue(re.compile(r"千万(?:别|不要|不能|不可|不得)" + _IDLE), Strength.FIRM),
    Cue(re.compile(r"(?<![要想是])(?:不要|不准|不许|不能|不得|不可以|不可)再" + _IDLE), Strength.FIRM),
    Cue(re.compile(_BIE.replace("别(?!", "别再(?!")), Strength.FIRM),
    Cue(re.compile(r"(?:严禁|禁止|(?<!是)不许|不得(?!不|了|已|而)|不允许|请勿|切勿|休想)"), Strength.RULE),
    Cue(
        re.compile(r"(?<=[^\s，。：])(?:是|属于|被)(?:绝对|严格|严令|明令|完全)?禁止(?:的|$)"),
        Strength.RULE,
        needs_tool=True,
    ),
    Cue(re.compile(r"(?<=[^\s，。：])(?:都不行|也不行|不行)$|谁都不行"), Strength.RULE, needs_tool=True),
    Cue(re.compile(r"不准(?!确|时|的|了|点|，|$)"), Strength.RULE),
    Cue(
        re.compile(
            r"(?:^|^(?:但是?|不过|可是)|你|也|都|就|就是|唯独|坚决|任何.{1,12}?|所有.{1,12}?|未经.{1,12}?)不(?:能|可以)(?!用$|用了|够|吗|么|说|怪|算|$)"
        ),
        Strength.SOFT,
        needs_tool=True,
    ),
    Cue(re.compile(_WITHOUT_LEAVE + r".{0,20}?" + _NOT), Strength.RULE),
    Cue(
        re.compile(
            r"(?:没有|没(?!有)|未)(?!你|必|问题|关系|事|人|时间)[^，,。]{1,10}?(?:就|也|都|则|的话)?"
            r"(?:不许|不准|不得|不要|别|禁止"
            r"|(?<=同意)不能|(?<=同意就)不能|(?:(?<=[准认权份审试可字看头查过])|(?<=[准认权份审试可字看头查过]就))(?:不能|不可以))"
        ),
        Strength.RULE,
        needs_tool=True,
    ),
    Cue(re.compile(r"(?:不经|未经|没经|不问)我.{0,6}(?:就|便|擅自)"), Strength.RULE, needs_tool=True),
    Cue(
        re.compile(
            r"停止(?=自动|使用|再|给|往|向|在|对|把|替|为我|用(?!户)|发(?!动|电|烧)|搜|推送|删|上网|未经|擅自|私自|乱)"
        ),
        Strength.FIRM,
    ),
    Cue(re.compile(r"避免(?=.*[一-鿿]{2})"), Strength.RULE, needs_tool=True),
    Cue(
        re.compile(r"(?:只能|只准|只许|只可以|只允许|仅限|仅能|仅可|只可(?!惜|是)|仅允许|最多只能|顶多)"),
        Strength.BOUND,
    ),
    # 邮件一律由我自己发; 都需要我亲自确认; 超过一千的，先问我; 你无权删除
    Cue(
        re.compile(r"(?:一律|都|必须|只能|以后|今后|全部|一概)?(?:都)?由我(?:自己|来|亲自|本人)"),
        Strength.RULE,
        needs_tool=True,
    ),
    Cue(
        re.compile(
            r"(?:必须|都要|都得|都需要?|一律要?|务必)(?:由|经|经过)?我(?:亲自|本人|来|先|们)*"
            r"(?:确认|批准|同意|审核|审批|过目|点头|签字|授权|许可|看过|把关)"
        ),
        Strength.RULE,
        needs_tool=True,
    ),
    Cue(
        re.compile(r"^\s*(?:请|你|都|就|要|得|也|务必)*先(?:问|请示|通知|告诉|征求|跟|和|向)[^，,]{0,2}我[^，,]{0,4}$"),
        Strength.RULE,
        needs_tool=True,
    ),
    Cue(re.compile(r"一律(?:都)?(?:必须|要|需要?|得)先?(?:走|经过?|报|提交)"), Strength.RULE, needs_tool=True),
    Cue(
        re.compile(r"(?:等一等|等一下|等等|等会儿?|缓一缓|晚点|晚一点|稍后|过会儿|压一压|放一放)(?:再(?!说)|[，,]|$)"),
        Strength.NOW,
        needs_tool=True,
    ),
    Cue(re.compile(r"只有我(?:们|自己|本人)?(?:能|可以|才能|有权)"), Strength.RULE, needs_tool=True),
    Cue(re.compile(r"(?:要|得|必须|需要?)等我们?的?(?:批准|同意|确认|点头|审)"), Strength.RULE, needs_tool=True),
    Cue(re.compile(r"你(?:无权|没有?(?:任何)?(?:权限|权利|权|资格))(?!吗)"), Strength.RULE, needs_tool=True),
    Cue(re.compile(r"不(?:能|可以)(?:直接|擅自|私自|随便|自动|自行|随意)"), Strength.FIRM, needs_tool=True),
    Cue(re.compile(r"^\s*(?:我)?(?:坚决|明确)?拒绝(?=被|转|再)"), Strength.RULE, needs_tool=True),
    Cue(
        re.compile(r"(?:必须|一律|务必|一定要)(?:始终|总是|都|全部|要)*(?:用|以|使用|采用|走|通过)(?=[^，,]{1,12}$)"),
        Strength.RULE,
        needs_tool=True,
    ),
    # 建工单之前必须先查重; 一定要主管批准以后才能退款
    Cue(
        re.compile(r"(?:之前|以前|前)[，,]?[^，,]{0,6}(?:必须|务必|一定要?|都要|都得|应当)先?(?!等)"),
        Strength.RULE,
        needs_tool=True,
    ),
    Cue(
        re.compile(
            r"(?:必须|务必|一定要|一定得|都要|都得|只有)[^，,]{0,12}(?:批准|同意|签字|确认|审核|审批|核准|许可|授权|复核|点头)"
            r"(?:过)?(?:了)?(?:以后|之后|后)?(?:才能|才可以?|才准|才行|再|方可)"
        ),
        Strength.RULE,
        needs_tool=True,
    ),
    Cue(
        re.compile(
            r"(?:最多|不(?:得|能|要|可以|可|许|准)(?:超过|高于|多于)|每.{1,4}不超过|单[笔次].{0,6}不超过|不超过(?=.*每))(?=.*[\d一二两三四五六七八九十百千])"
        ),
        Strength.BOUND,
        needs_tool=True,
    ),
    Cue(
        re.compile(
            r"^(?:请|你|以后|今后|平时|都|就)*只(?:用|在|往|向|给|读|查|发|写|订|跑|执行|访问|连|操作|搜|推|翻译|部署|提交|合并|调用|走|接受?|退|付|装)"
        ),
        Strength.BOUND,
        needs_tool=True,
    ),
    Cue(
        re.compile(
            r"(?:只有|必须|得|要|需要|除非|经过?|征得|得到|获得|问过|等)(?:.{0,4}?)(?:我"
            r"|我们)(?:.{0,8}?)(?:才能|才可以?|才准|才行|再|之后再|以后再|方可)"
        ),
        Strength.RULE,
    ),
    Cue(
        re.compile(
            r"先(?:.{0,4}?)(?:问|跟|和|向|经|征|给|让|通知|告诉|请示|等)(?:.{0,2}?)我.{0,8}?(?:再|才|之后|然后)"
        ),
        Strength.RULE,
        needs_tool=True,
    ),
    Cue(
        re.compile(
            r"(?:必须|务必|一定要?|都要|都得|得|要|需要|应该|应当|请|都|记得)(?:先|事先|提前)(?:.{0,6}?)" + _ASK_ME
        ),
        Strength.RULE,
    ),
    Cue(
        re.compile(
            r"(?:之前|以前|前)[，,]?(?:你|请|都|也)*(?:必须|务必|一定要?|都要|都得|得|要|需要"
            r"|应该|应当|请|先|都|记得)+(?:先|事先|提前)?(?:.{0,6}?)" + _ASK_ME
        ),
        Strength.RULE,
    ),
    Cue(
        re.compile(
            r"(?:必须|务必|一定要|都要|都得|需要|得)(?:先)?(?:经过?|征得|得到|获得|取得|征求|有)(?:我|我们|本人)"
        ),
        Strength.RULE,
    ),
    Cue(
        re.compile(r"先(?:别|不要|不能|勿|不|暂停|停一停|停一下|停下来|等等|缓一缓)(?!" + "说|急|管|用|走|忙)"),
        Strength.NOW,
    ),
    Cue(
        re.compile(
            r"(?:我|我们)(?:真的|实在|很|并|也|可|都|永远|绝对|再也|再)*(?:不想|不希望|不愿意?"
            r"|不喜欢|不允许|不同意|不接受|不准|不许|不要)(?:再|看到|看见|让|有|听到)?(?:你|被"
            r"|任何人|谁)"
        ),
        Strength.BOUND,
    ),
    Cue(
        re.compile(r"(?:我|我们)(?:永远|绝对|再也)(?:不想|不希望|不愿意?)(?:再)?(?:你|被|看到|收到|接到)"),
        Strength.VERY,
    ),
    Cue(re.compile(r"(?:一律|一概|统统|全都?|通通)(?:不|别|禁)"), Strength.VERY),
    # 以后查询天气都用摄氏度; 今后会议都安排在下午
    Cue(
        re.compile(
            r"(?:以后|今后|往后|从今以后|从现在起|从今天起|将来)(?:(?!我|他|她|它|谁|大家).){0,16}?(?:都|一律|全部|总是|只|统一)"
            r"(?:要|得|必须|请|给我)?(?:用|安排|放|发|写|走|选|按|设|排|改|存|定|订|搜|查|推|部署|提交|翻译|抄送|跑|连|交)"
        ),
        Strength.VERY,
        needs_tool=True,
    ),
    Cue(re.compile(r"(?:少|甭|莫要|莫)(?=给|往|在|用|发|删|动|碰|乱)"), Strength.SOFT, needs_tool=True),
    Cue(re.compile(_BUYAO), Strength.SOFT),
    Cue(re.compile(_BIE + "(?!再)"), Strength.SOFT),
    Cue(re.compile(r"(?<![请切])勿(?!忘|念|扰|谓)"), Strength.SOFT),
)
