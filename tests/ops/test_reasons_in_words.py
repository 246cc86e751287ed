"""A report says in words why a tool was summarized or skipped."""

from typing import get_args

from toolmem.guidance.policies import POLICY_REASONS
from toolmem.guidance.skip import Reason
from toolmem.research.report.sections import REASONS


def test_the_report_knows_every_reason_of_every_policy_in_the_words_of_the_answer():
    assert set(REASONS) == {*get_args(Reason), *POLICY_REASONS}
    assert {reason: REASONS[reason] for reason in POLICY_REASONS} == POLICY_REASONS
