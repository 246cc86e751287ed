"""The words by which answers tell failure, success and emptiness, as patterns; the lists stand in `wording.txt`.

No pattern repeats something that can itself repeat over the same characters, and every open repetition is bounded:
their cost grows with the length of the text and not faster. Callers apply them to bounded windows.
"""

from __future__ import annotations

import re
from pathlib import Path

from toolmem.readers.pattern_lists import sections

_LISTS = dict(sections(Path(__file__).with_name("wording.txt")))
_STATUS = _LISTS["status phrase"]


def _listed(name: str, before: str = "") -> re.Pattern[str]:
    return re.compile(before + _LISTS[name], re.IGNORECASE)


OPENING = _listed("opening")
STRICT_OPENING = _listed("strict opening")
FORM_REFUSED = _listed("form refused")
MEASURED = _listed("measured")
COMPLAINT = _listed("complaint")
COMPLAINT_ZH = _listed("complaint zh")
HARMLESS = _listed("harmless")
EMPTY_ANSWER = _listed("empty answer", before=r"\s{0,20}[\[(<*\"']{0,3}")
HTTP_LINE = re.compile(
    r"(?:HTTP/\d(?:\.\d)?\s{1,3}|HTTP\s{1,3}(?:error\s|status\s)?(?:code\s?)?:?\s?|status(?:[\s_]code)?\s?[:=]?\s?|"
    r"error\s)?"
    rf"([45]\d\d)\b[\s:,-]{{0,4}}(?:{_STATUS}|(?=$|\n)|client error|server error)",
    re.IGNORECASE,
)
HTTP_IN_MESSAGE = re.compile(
    r"\b(?:status[\s_]?code|http(?:[\s_]?status)?|status|response[\s_]code|error[\s_]code)\s?(?:of|is|was|"
    r"[:=])?\s?([45]\d\d)\b",
    re.IGNORECASE,
)
HTML_TITLE = re.compile(
    rf"<(?:title|h1)[^>]{{0,200}}>\s{{0,20}}(?:error\s{{0,3}})?(?:(?:([45]\d\d)\s{{0,3}}[-:|–]?\s{{0,3}})?"
    rf"(?:error[\s:-]{{0,4}})?({_STATUS})|([45]\d\d)(?:\serror)?|(?:an )?error(?: occurred| page)?)[\s.!]{{0,4}}"
    r"(?:\||-|–|<)",
    re.IGNORECASE,
)
XML_ERROR = re.compile(
    r"(?:<\?xml[^>]{0,200}\?>\s{0,20})?<(?:\w{1,30}:)?(?:Error|ErrorResponse|Fault|Exception)\b[^>]{0,300}>",
    re.IGNORECASE,
)
XML_MESSAGE = re.compile(r"<(?:Message|faultstring|Reason|Detail)>([^<]{1,600})<", re.IGNORECASE)
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
