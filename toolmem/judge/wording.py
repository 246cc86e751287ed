"""The words by which answers tell failure, success and emptiness, as patterns.

No pattern repeats something that can itself repeat over the same characters, and every open repetition is bounded:
their cost grows with the length of the text and not faster. Callers apply them to bounded windows.
"""

from __future__ import annotations

import re

from toolmem.readers.error_classes import one_of


def words(text: str) -> frozenset[str]:
    """The words of a text, for lists that are long and unordered."""
    return frozenset(text.split())


STATUS_PHRASE = (
    r"(?:bad request|unauthorized|payment required|forbidden|(?:page |file |resource )?not found|method not allowed|"
    r"not acceptable|request timeout|conflict|gone|unprocessable entity|unprocessable content|too many requests|"
    r"internal server error|not implemented|bad gateway|service (?:temporarily )?unavailable|gateway time-?out|"
    r"access denied|server error)"
)

# how a word for failure is followed where it opens a message: "Error (404):", "error -32601:", "Error - ", "失败："
_TAIL = (
    r"(?:\s{0,3}[(\[#][^)\]\n]{1,60}[)\]]|\s{1,3}-?\d{1,6}(?:\s?\([^)\n]{1,40}\))?|\scode)?\s{0,3}"
    r"(?::|\s-\s|\s–\s|!|：)"
)
_CAMEL = r"(?:[A-Za-z_]\w{0,60}\.){0,8}\(?(?:[A-Za-z_]\w{0,60}\.){0,8}(?-i:[A-Z])\w{0,60}"
_CALLED = r"(?:request|command|operation|execution|tool|call|query)"
_CALLED_TOO = (
    r"(?:process|script|task|job|build|login|authentication|connection|upload|download|action|payment|transaction)"
)

# where an answer may begin with anything, and begins so, it tells a failure
OPENING = one_of(
    r"(?:an |a |the following )?(?:[a-z]{1,30}[\s_-]){0,3}?(?:errors?|exception) (?:occurred|occured|happened|"
    r"encountered|while|when|during|executing|running|calling|in|from|at|processing|parsing|reading|loading|fetching|"
    r"opening|writing|creating)\b",
    r"(?:[\w./-]{1,40}:?\s{1,3}){0,3}?(?:[\w./-]{1,40}[_./-])?(?:error|exception|failure|fail(?:ed)?|fatal|panic|"
    rf"critical){_TAIL}",
    rf"{_CAMEL}(?:Error|Exception|Fault|Timeout|Interrupt|Refused|Failed|Failure|Denied|NotFound|Invalid|Expired|"
    rf"Exceeded|Missing|Unauthorized|Forbidden|Unavailable|Disconnected|Violation)\)?(?:\s{{0,3}}[:(\[]|\s*$|\s{{2}})",
    r"traceback \(most recent",
    r"(?:uncaught|unhandled|fatal) (?:\w{1,40} )?(?:exception|error|typeerror|rejection)",
    r"exception in thread",
    r"panic: ",
    r"thread '[^'\n]{0,60}' panicked",
    r"segmentation fault|bus error|core dumped",
    r"php (?:fatal|parse) error",
    r"(?:killed|aborted)\s*$",
    r"malformed (?:command|request|input|query|json|arguments?)\b",
    r"\d{1,4} validation errors? for\b|validation (?:error|failed)|(?:one or more )?validation errors? (?:occurred|"
    r"detected)",
    r"ORA-\d{5}|SQLSTATE\b|Msg \d{1,6}, Level|ERROR \d{4} \(",
    r"(?:net::)?ERR_[A-Z_]{3,40}",
    r"npm ERR!|rpc error:",
    r"(?:错误|异常|失败|报错|出错)\s{0,3}[:：!！，,]",
    r"[^\s:：]{1,12}(?:错误|失败|异常|出错)\s{0,3}[:：]",
    rf"(?:{_CALLED}|{_CALLED_TOO}) (?:has |was |is )?(?:failed|timed? ?out|denied|refused|rejected|aborted|invalid)",
)

# the same where the answer is data that programs print or others wrote: the word for failure comes first
STRICT_OPENING = one_of(
    rf"errors?(?: [a-z]{{1,30}}){{0,4}}?{_TAIL}",
    r"(?:mcp|api|http|tool|validation|internal|server|execution|runtime|unexpected|command|request|system|network|"
    rf"database|query) (?:error|exception|failure){_TAIL}",
    r"(?:fatal|failed|failure|refused|denied|rejected|forbidden|unauthorized|aborted)(?: error)?\s{0,3}:",
    r"(?:[a-z]{1,30} ){1,3}failed\s?[\]:]",
    r"(?:undefined|unrecognized|unknown) (?:function|variable|identifier|symbol|name|command)\b",
    r"(?:net::)?(?-i:ERR_[A-Z_]{3,40})",
    r"(?-i:[A-Z][a-z]{1,30} (?:Error|Exception))(?: in | at |: )",
    r"an error (?:occurred|occured|happened|was encountered)",
    rf"{_CAMEL}(?:Error|Exception)(?::\s|\s*$|\()",
    r"malformed (?:command|request|input|query|json|arguments?)\b",
    r"\d{1,4} validation errors? for\b",
    r"(?:错误|异常|失败|报错|出错)\s{0,3}[:：!！]",
    rf"{_CALLED} (?:has |was |is )?(?:failed|timed? ?out|denied|refused|rejected|aborted)",
)

# a harness that takes the call for badly formed tells what form it wants
FORM_REFUSED = one_of(
    r"no (?:\w{1,30} ){1,3}(?:was|were|is|has been) (?:found|given|provided|detected|supplied|recognized) in (?:your|"
    r"the)\b",
    r"(?:please )?format your ",
    r"your (?:last |previous )?(?:response|answer|input|query|command|request|call|action|output|message) (?:should|"
    r"must|did not|does not|didn't|doesn't|could not|cannot|is not|was not|contains? no|has no)\b",
    r"(?:invalid|wrong|bad|incorrect|unexpected) (?:format|syntax|structure)\b",
    r"(?:the )?(?:expected|correct|required) (?:format|syntax|form)(?: is|\s?:)",
)

# an opening whose word for failure names a measured quantity: "Mean absolute error: 0.031", "Failed: 3 %"
MEASURED = one_of(
    r"[^\n:=]{0,80}(?:errors?|failures?|failed|exceptions?|timeouts?)\s{0,3}(?:rate|ratio|count|"
    r"margin)?\s{0,3}[:=]\s{0,3}[-+]?(?:\d{0,12}\.\d{1,20}|\d{1,12}(?=\s?%))(?:e[-+]?\d{1,4})?\s{0,3}(?:%|$|\n|"
    r"[,;(±]|\+/-)",
    r"[^\n:=]{1,80} errors?\s{0,3}[:=]\s{0,3}\d{1,12}\s{0,3}(?:$|\n)",
)

HTTP_LINE = re.compile(
    r"(?:HTTP/\d(?:\.\d)?\s{1,3}|HTTP\s{1,3}(?:error\s|status\s)?(?:code\s?)?:?\s?|status(?:[\s_]code)?\s?[:=]?\s?|"
    r"error\s)?"
    rf"([45]\d\d)\b[\s:,-]{{0,4}}(?:{STATUS_PHRASE}|(?=$|\n)|client error|server error)",
    re.IGNORECASE,
)
HTTP_IN_MESSAGE = re.compile(
    r"\b(?:status[\s_]?code|http(?:[\s_]?status)?|status|response[\s_]code|error[\s_]code)\s?(?:of|is|was|"
    r"[:=])?\s?([45]\d\d)\b",
    re.IGNORECASE,
)
HTML_TITLE = re.compile(
    rf"<(?:title|h1)[^>]{{0,200}}>\s{{0,20}}(?:error\s{{0,3}})?(?:(?:([45]\d\d)\s{{0,3}}[-:|–]?\s{{0,3}})?"
    rf"(?:error[\s:-]{{0,4}})?({STATUS_PHRASE})|([45]\d\d)(?:\serror)?|(?:an )?error(?: occurred| page)?)[\s.!]{{0,4}}"
    r"(?:\||-|–|<)",
    re.IGNORECASE,
)
XML_ERROR = re.compile(
    r"(?:<\?xml[^>]{0,200}\?>\s{0,20})?<(?:\w{1,30}:)?(?:Error|ErrorResponse|Fault|Exception)\b[^>]{0,300}>",
    re.IGNORECASE,
)
XML_MESSAGE = re.compile(r"<(?:Message|faultstring|Reason|Detail)>([^<]{1,600})<", re.IGNORECASE)

# in a short message about the call, each of these says that it did not work
COMPLAINT = one_of(
    r"\b(?:not|never|nothing|none) (?:be |been |currently |yet )?found\b",
    r"\b(?:does|do|did|is|was|has)(?: not|n'?t) (?:exist|match|support|appear|have|contain|allow|recogni[sz]e|belong|"
    r"accept)\w*",
    r"\bdoesn'?t exists?\b|\bnot exist\b|\bno longer exists\b",
    r"\bno such\b|\bno entry named\b|\bno match found for\b",
    r"\bno (?:\w{1,30} ){1,3}(?:with|named|called|for) (?:(?:the )?(?:id|name|key|email|number)\b|['\"`#\d]|"
    r"[a-z]{0,20}\d)",
    r"\b(?:can ?not|can't|could not|couldn't|unable to|failed to|failure to|refus(?:ed|ing) to|was not able to|"
    r"won't)\b",
    r"\b(?:is|are) (?:a )?required\b|\brequired (?:parameter|argument|field|property|positional|key|option)s?\b",
    r"\bfield required\b|\brequires (?:a|an|at least|one|the)\b|\bis ambiguous\b",
    r"\b(?:must|should) (?:not )?(?:be|have|match|contain|start|end|provide|specify|include|equal|use)\b",
    r"\bmissing (?:(?:\d+|a|an|the|your) )?(?:required|mandatory|parameters?|arguments?|fields?|positional|values?|"
    r"operand|keys?|input|api|data|property|or)\b",
    r"\b(?:invalid|illegal|malformed|unsupported|unrecogni[sz]ed|unexpected|unterminated|incorrect)\b(?! ?\()",
    r"\bwrong (?:number|type|kind|format|value|password|length|size|order|\w{1,30} type)\b|\bWRONGTYPE\b",
    r"\bnot (?:be |been )?(?:updated|created|deleted|saved|sent|added|changed|modified|completed|executed|applied)\b",
    r"\boutside (?:of )?(?:the|its|your) (?:\w{1,30} )?(?:range|limits?|bounds|window|area|hours|folder|workspace|"
    r"sandbox|root|project|director\w{1,5})\b",
    r"\bhas no (?:attribute|member|method|property|column|field|permission|access)\b",
    r"\bhas (?:already )?(?:closed|ended|passed)\b|\b(?:fully|already) booked\b|\bsold out\b",
    r"\bnot (?:allowed|permitted|authori[sz]ed|supported|available|enough|(?:a )?valid|accessible|recogni[sz]ed|"
    r"implemented|enabled|subscribed|logged in|authenticated|installed|defined|connected|registered|possible|unique|"
    r"configured|sufficient|active|ready)\b",
    r"\b(?:unauthori[sz]ed|forbidden|denied|unauthenticated)\b|\bauthentication (?:required|needed)\b",
    r"\btimed?[ -]?out\b|\btimeout\b|\bdeadline exceeded\b|\btook too long\b",
    r"\brate[ -]?limit(?:ed|s)?\b|\btoo (?:many|long|large|small|short|few|big)\b|\bquota\b",
    r"\bunknown (?:\w{1,30} )?(?:tool|action|function|command|method|parameter|argument|option|key|field|service|"
    r"column|table|type|user|id|name|error|endpoint|operator|host|city|location|symbol|currency|unit|format|language|"
    r"value|state|status|database|identifier|property|attribute|entity|resource|device|product)s?\b",
    r"\bexceed(?:s|ed|ing)?\b|\binsufficient\b|\bout of (?:range|bounds|memory|stock|disk|space)\b|"
    r"\bless than the minimum\b",
    r"\balready (?:exists?|taken|in use|been|registered|has|have|shipped|cancelled|closed|running)\b",
    r"\bconflicts?\b|\bduplicate\b|\boverlap(?:s|ped|ping)? with\b|\bmore than one\b|\bmultiple (?:matches|"
    r"occurrences)\b",
    r"\b(?:has|have|is|was|been|token|session|key|link) expired\b|\bis (?:disabled|locked)\b|\bread-?only\b",
    r"(?<!\()\b(?:declined|rejected|refused|aborted|crashed|unavailable|unreachable|interrupted)\b|\buser unknown\b",
    r"\bfailed(?=\s{0,3}(?:$|[.:!;,-]\s|(?:to|with|because|due|after|at|for|in|on|while)\b))",
    r"\b(?:errors?|exception|failure)(?=\s{0,3}(?:$|[.!]\s{0,3}$|[:(#]|\d|(?:occurred|while|during|in|at|when)\b))",
    r"\ban? (?:\w{1,30} )?(?:error|exception|failure)\b",
    r"\bunrecognized name\b|\bundefined (?:variable|function|name|reference|symbol|column)\b",
    r"\A\s{0,20}(?:please|you (?:must|need|should|have to)) (?:provide|specify|enter|supply|set|use|log|sign|"
    r"authenticate|give)\b",
    r"\A\s{0,20}unknown \w|\bhas(?:n't| not) been\b|\bno \w{1,30} (?:left|remaining|available)\b|"
    r"\bis (?:already )?taken\b",
    r"\bmax(?:imum)? (?:\w{1,30} ){1,4}(?:reached|exceeded)\b|\blimit (?:was |has been )?reached\b",
    r"\bdivision by zero\b|\b(?:is|device|host|server|service) (?:currently )?offline\b",
    r"\bdoes not add up\b|\bnot in the (?:list|allowed)\b",
)
COMPLAINT_ZH = one_of(
    r"失败|不存在|未找到|找不到|没有找到|未能|无法|不能(?:为空|超过|小于|大于|是|使用|找到)|超时|权限不足|没有权限|无权",
    r"参数错误|缺少|无效|不合法|非法|不正确|未授权|未登录|被?拒绝|异常|不足|已存在|已被(?:占用|使用|注册)|冲突|过期|不支持",
    r"错误码?[:：]|(?:密码|账号|用户名|格式|类型|输入|语法|验证码)错误|售完|售罄|出错|报错|请(?:先|稍后|重新|检查|输入|提供)",
)

# what takes the sting out of a complaint: none of it happened, or it is measured, or it is over
HARMLESS = one_of(
    r"\b(?:0|no|zero|without(?: any)?) (?:\w{1,30} )?(?:errors?|failures?|failed|conflicts?|warnings?|exceptions?|"
    r"problems?|issues|timeouts?|duplicates?)\b",
    r"\berror[- ](?:free|proof|handling|correction|correcting|rate|margin|bars?|logs?|reports?|messages?|codes?|"
    r"pages?)\b",
    r"\b(?:errors|failures|warnings|conflicts)[ \t]?[:=][ \t]?\d{1,9}\b|\berror[ \t]?[:=][ \t]?(?:0|none)\b|"
    r"\bfail(?:ed|ure)?\s?[:=]\s?0\b|\bfail-?(?:safe|over|fast)\b",
    r"\b(?:standard|mean|absolute|squared?|relative|type|rounding|margin of|trial and|percentage|estimated|training|"
    r"test|validation|std|rms) errors?\b(?!\s?:?\s?[a-z])",
    r"\berrors? (?:were |was |have been |has been )?(?:fixed|corrected|resolved|cleared|removed|found and fixed)\b",
)
DONE = re.compile(
    r"\s{0,20}(?:[\w'/.-]{1,60}\s{1,3}){0,4}?(?:success(?:ful|fully)?|succeeded|ok|done|completed|"
    r"has been (?:\w{1,30}ly )?(?:\w{1,30}ed|sent|written)|created|updated|saved|sent|passed|confirmed|added|deleted|"
    r"removed|written|logged|scheduled|booked)\b",
    re.IGNORECASE,
)
# "Renamed failed.txt to error.txt": a past tense at the beginning reports what was done, but for these
DID = re.compile(
    r"\s{0,20}(?!(?i:fail|reject|den|declin|refus|tim|abort|crash|un|malform|exceed|expir|disallow|invalid|duplicat|"
    r"block|"
    r"forbid|interrupt|limit|terminat|need|requir|miss|mal|restrict|conflict|kill|ban|prohibit|disconnect|return))"
    r"[A-Za-z][a-z]{1,19}ed\b(?!:| (?:but|because))"
)
DONE_ZH = re.compile(r"成功|已完成|已发送|已保存")

_NOTHING_OF = (
    r"(?:results?|match(?:es)?|matching|entry|entries|records?|rows?|items?|events?|files?|data|hits?|output|"
    r"documents?|"
    r"messages?|e?-?mails?|flights?|tasks?|tickets?|orders?|products?|users?|content|answers?|articles?|news|notes?|"
    r"memories|observations?|appointments?|meetings?|contacts?|pages?|alerts?|issues?|lines?|response)\b"
    r"(?! (?:with|named|called|for) (?:id|name|number)\b)"
)
EMPTY_ANSWER = one_of(
    r"(?:there (?:are|were|is|was) |i |we |found |returned |got )?(?:no|0|zero) "
    r"(?!such )(?:\w{1,30} ){0,2}?" + _NOTHING_OF,
    r"(?:your (?:search|query) )?(?:returned|found|matched) (?:no|0|nothing)\b",
    r"nothing (?:was )?(?:found|matched|to show)",
    r"empty (?:set|result|list|response|output)\b",
    r"(?:none|null|n/?a|\(?empty\)?)\b\)?\s*$",
    r"\(?no output\)?",
    r"(?:没有|无|暂无|未找到)(?:相关|任何|匹配的?|符合条件的?)?(?:结果|数据|记录|内容|信息)",
    before=r"\s{0,20}[\[(<*\"']{0,3}",
)
