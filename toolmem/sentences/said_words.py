"""The words of sentences: what is done (families of verbs), to what (things), and what only fills."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def listed_by_name(text: str) -> dict[str, str]:
    """Lists of words by name: "send: send email; post: post publish"."""
    return {name: listed for name, _, listed in (each.strip().partition(": ") for each in text.split("; "))}


_FAMILIES = listed_by_name(
    "send: send email e-mail mail message msg dm text write contact notify reply respond answer forward ping reach "
    "inform tell sms cc bcc compose 发送邮件 发邮件 发电子邮件 写邮件 写信 发信 发消息 发信息 发短信 发私信 私信 "
    "联系 回复 转发 通知 寄送 发给 发送 发到 发往 发 写给; post: post publish tweet announce upload submit put "
    "comment 发布 发帖 发表 张贴 上传 公开 推文; share: share give disclose leak reveal expose grant 分享 共享 泄露 "
    "透露 告诉 提供; fetch: open visit browse access fetch load navigate go get crawl scrape surf retrieve request "
    "call download click 访问 打开 浏览 进入 下载 请求 抓取 登录 点击 上; read: read view look see show check list "
    "peek 读取 查看 阅读 翻看 看 读 查; search: search find look google query lookup 搜索 查找 搜; delete: delete "
    "remove erase wipe destroy drop trash purge clear discard rm unlink truncate 删除 删掉 删 清空 销毁 抹掉 丢弃; "
    "kick: remove kick ban expel uninvite 踢出 踢 移除 移出 剔除 赶出; invite: invite 邀请 拉进 拉; add: add put "
    "include insert append attach 添加 加入 加到 加进 加 放进 放到 写进 写入 插入 附上; create: create make set "
    "schedule open generate plan start arrange put new register 创建 新建 建立 建 安排 设置 生成; change: update "
    "change modify edit alter overwrite rename reschedule move set rewrite adjust reset touch replace 修改 更改 改动 "
    "改 更新 编辑 重命名 移动 改期 动; write: write save append overwrite put store edit 写入 写进 覆盖 保存 写; "
    "cancel: cancel revoke 取消 撤销; pay: pay transfer send wire charge spend remit 转账 汇款 付款 支付 打款 转钱 "
    "付钱 转 汇 付; buy: buy purchase order 购买 下单 买; refund: refund reimburse 退款 退钱; book: book reserve "
    "rent hire 预订 预定 预约 订; run: run execute use invoke launch call 运行 执行 使用 调用 启动 用; install: "
    "install uninstall upgrade 安装 卸载 装; push: push 推送到 推送 推代码 推到 推; commit: commit 提交; merge: "
    "merge 合并; rebase: rebase; deploy: deploy release ship rollout 部署 上线 发布版本; restart: restart reboot "
    "重启; stop: stop kill terminate shutdown 停止 终止 关掉; translate: translate 翻译; transfer: transfer "
    "escalate; mention: mention include quote paste reveal disclose leak say type expose 提到 提及 写上 包含 透露; "
    "accept: accept approve confirm; close: close resolve; force: 强制"
)
_NEIGHBOURS = listed_by_name(
    "read: fetch search; fetch: read; send: post; post: send write; share: send post; create: add write book; add: "
    "create change invite; invite: add; kick: delete; change: write; write: change create; buy: pay book; mention: "
    "send post write"
)
_DOINGS = listed_by_name(
    "pay: money transaction payment transfer; buy: purchase order; book: reservation booking; send: email mail "
    "message dm sms; post: post tweet comment; refund: refund; invite: invitation invite; fetch: request"
)
_THINGS = listed_by_name(
    "email: email emails e-mail e-mails mail mails inbox mailbox 电子邮件 邮件 邮箱 收件箱 电邮; file: file files "
    "document documents doc docs 文件 文档 文件里; folder: folder folders directory directories 文件夹 目录; event: "
    "event events meeting meetings appointment appointments invite 日程 会议 活动 事件 约会; web: webpage webpages "
    "page pages site sites website websites url urls web link links 网页 网站 页面 网址 链接 站点; message: message "
    "messages msg msgs dm dms text texts chat 消息 信息 短信 私信; money: money transaction transactions payment "
    "payments transfer transfers funds cash 钱 款项 资金 款; user: user users person people member members contact "
    "contacts customer customers 用户 成员 联系人 客户; channel: channel channels room rooms 频道 群组 群 聊天室; "
    "calendar: calendar calendars 日历; car: car cars rental rentals vehicle 汽车 租车 车; booking: booking bookings "
    "reservation reservations 预订单 预约单; password: password passwords passphrase 密码 口令; address: address "
    "addresses; database: database databases db 数据库; table: table tables 数据表 表; command: command commands "
    "shell terminal bash console 命令 终端 指令; order: order orders 订单; ticket: ticket tickets 工单; flight: "
    "flight flights 航班 机票; hotel: hotel hotels 酒店 旅馆 宾馆; restaurant: restaurant restaurants 餐厅 饭店 "
    "餐馆; branch: branch branches 分支; drive: drive drives 云盘 网盘 硬盘; profile: profile profiles 个人资料 资料 "
    "个人信息; request: request requests; package: package packages dependency dependencies library libraries "
    "software module modules"
)
NAMING = listed_by_name("email: 邮件 电子邮件 信; message: 消息 短信 私信; money: 转账 汇款 付款")
_READING = "fetch read search"
_LIGHT = "create do give initiate issue make place send start submit"
_CONTENT = (
    "code codes key keys link links phrase phrases pin secret secrets text token tokens word words 代码 密码 验证码 "
    "口令 链接 密钥 字样 内容里"
)
_AMOUNTS = "amount budget cost fee payment price sum total value"
_FILLERS = (
    "a absolutely again agent all allowed also always an and any anybody anymore anyone anything are assistant at "
    "at_all be before by can circumstances content contents could definitely directly do does don't each either else "
    "ensure even ever every everybody everyone everything file's first folks for from get happens has have her here "
    "him his how i important in into is it's item its just kind kindly kinds let like make matter may me might "
    "money's more's must my need needs neither never new no no. nobody none nor not nothing now nowhere of off ok "
    "okay on one ones only onto or our out people permitted person persons please pls really recipients rule shall "
    "should simply sir some somebody someone something sort strictly stuff supposed sure than thanks that the their "
    "them there there's thing things this through to too under up us using via want we what whatever whatsoever which "
    "who whoever whom will with would you your yourself 请 再 任何人 任何东西 任何内容 任何 内容 东西 什么 给 往 向 "
    "到 把 将 对 跟 和 与 或者 或 及 在 的 里面 里 上面 上 中 从 用 替我 帮我 为我 我的 我们的 我们 我 你 都 一律 "
    "必须 务必 一定 之前 以前 前 以后 今后 从现在起 从今以后 从今往后 永远 绝对 所有 每个 每次 每封 每 一切 了 去 来 "
    "时候 时 得 地 过 这个 那个 个 封 条 张 笔 次 位 份 些 人 谁 号 编号 叫做 叫 名为 是 为 也 就 还 又 无论如何 "
    "任何情况下 任何时候 情况下 千万 可以 能 要 会 啊 吧 呢 哦 呀 地址 单笔 一笔 每笔 先 事先 总是 始终 之内 即使 "
    "通过 进行 这里 那里 一次 某人 别人 其他人 记住 谢谢 进 掉 下 下面 底下 着 出去 出 让 代 代表我 拜托 麻烦 ， , "
    "、 : ： ; ； （ ） ( ) “ ” ！ ! 。 . - —"
)
_NOT_NAMES = (
    "always am april asap august chinese christmas csv december do don't dutch easter english february french friday "
    "german holiday html i id italian january japanese json july june korean march may monday never no not november "
    "october ok okay only pdf please pm portuguese russian saturday september spanish stop sunday thursday tuesday "
    "under url wednesday weekday weekend"
)
_TIMES = (
    "afternoon april august christmas day december easter evening february friday holiday hour january july june "
    "lunch march midnight minute monday month morning night noon november october saturday september sunday thursday "
    "today tomorrow tonight tuesday wednesday week weekday weekend year"
)
_PREPOSITIONS = "at for from in into of on onto to under with"
_WRITING = "copy disclose include insert leak mention paste put quote reveal say type write"
_NAMED_BEFORE = "branch bucket channel database environment repo repository table"
_BEFORE_NAMES = "、 与 到 叫 叫做 名为 向 和 对 将 往 或 或者 把 移除 给 联系 跟 踢出 通知 邀请"
_FILE_ENDINGS = (
    "cfg conf css csv db docx env gif gz html ini jpeg jpg js json key lock log md pdf pem png pptx py sh sql tar "
    "toml ts txt xlsx xml yaml yml zip"
)
_PROGRAMS = listed_by_name(
    "delete: rm unlink shred rmdir srm trash trash-put rimraf del erase rd remove-item; stop: kill pkill killall; "
    "restart: reboot shutdown; fetch: curl wget http https lynx links w3m aria2c fetch; read: cat less more head tail "
    "nl tac strings xxd od grep rg awk sed bat view"
)
_INSTALLERS = (
    "pip pip3 uv pipx poetry conda mamba npm pnpm yarn bun apt apt-get aptitude dnf yum apk pacman brew cargo gem go "
    "composer"
)


def split(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _turned(table: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Word -> the names under which it is listed."""
    found: dict[str, set[str]] = {}
    for name, listed in table.items():
        for word in listed.split():
            found.setdefault(word, set()).add(name)
    return {word: frozenset(names) for word, names in found.items()}


FAMILIES = _turned(_FAMILIES)
NEIGHBOURS = {key: tuple(listed.split()) for key, listed in _NEIGHBOURS.items()}
DOINGS = {thing: next(iter(families)) for thing, families in _turned(_DOINGS).items()}
THINGS = _turned(_THINGS)
PROGRAMS = {key: tuple(listed.split()) for key, listed in _PROGRAMS.items()}
READING, LIGHT, CONTENT, AMOUNTS, FILLERS = map(split, (_READING, _LIGHT, _CONTENT, _AMOUNTS, _FILLERS))
NOT_NAMES, TIMES, PREPOSITIONS = map(split, (_NOT_NAMES, _TIMES, _PREPOSITIONS))
WRITING, NAMED_BEFORE, BEFORE_NAMES, FILE_ENDINGS = map(split, (_WRITING, _NAMED_BEFORE, _BEFORE_NAMES, _FILE_ENDINGS))
SENDING = split("send invite share add")
USES = split("touch touching access accessing")  # verbs that mean reading and writing alike
INSTALLERS = tuple(sorted(_INSTALLERS.split()))
_ENDINGS = (("ies", "y"), ("es", ""), ("s", ""), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"), ("d", ""))


def chinese_words(words: Iterable[str]) -> list[str]:
    """Those in Chinese, the longest first."""
    return sorted((word for word in words if "\u3400" <= word[0] <= "\u9fff"), key=len, reverse=True)


def base_forms(word: str) -> Iterable[str]:
    """What a word may be a form of: emails, emailing, emailed -> email."""
    yield word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            stem = word[: -len(ending)] + instead
            yield stem
            if not instead and len(stem) > 3 and stem[-1] == stem[-2]:
                yield stem[:-1]


def families_of(word: str) -> frozenset[str]:
    """The families of a verb, in whatever form it stands."""
    return next((FAMILIES[form] for form in base_forms(word) if form in FAMILIES), frozenset())


def things_of(word: str) -> frozenset[str]:
    """The thing that a word names, under its listed name; the word itself in its singular where it is not listed."""
    found = next((THINGS[form] for form in base_forms(word) if form in THINGS), None)
    return found if found is not None else frozenset((word[:-1] if word.endswith("s") and len(word) > 3 else word,))
