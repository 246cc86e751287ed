"""Writers in any order: no acknowledged call is lost, and the counts stay right."""

from datetime import UTC, datetime

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from toolmem.errors import Conflict
from toolmem.models.calls import JudgeIdentity, ToolCallResult, Verdict
from toolmem.models.guidance import Guidance
from toolmem.models.records import Document

KEEP = 4
NOW = datetime(2026, 1, 1, tzinfo=UTC)
JUDGE = JudgeIdentity("offline", "x", "1")
HANDLES, TOOLS = st.integers(0, 1), st.sampled_from(["a", "b"])


class Model:
    """What a tool must hold: plain lists."""

    def __init__(self):
        self.ids = []  # every call ever, in order
        self.new = set()  # seqs that no guidance covers
        self.judged = {}  # seq: score
        self.version = 0  # of the guidance

    @property
    def window(self):
        return range(max(1, len(self.ids) - KEEP + 1), len(self.ids) + 1)


def test_any_order_of_writers_agrees_with_a_plain_model(open_store, kind):
    class Writers(RuleBasedStateMachine):
        number = 0

        def __init__(self):
            super().__init__()
            Writers.number += 1
            self.workspace = f"w{Writers.number}"
            self.handles = handles
            self.tools = {}
            self.read = {}  # by handle and tool: what a summary has read

        @rule(handle=HANDLES, tool=TOOLS, ids=st.lists(st.integers(0, 9), max_size=6))
        def append(self, handle, tool, ids):
            calls = [ToolCallResult(tool_name=tool, create_time=NOW, id=str(n)) for n in ids]
            done = self.handles[handle].append_calls(self.workspace, calls, KEEP)
            if not ids:
                return
            model = self.tools.setdefault(tool, Model())
            fresh = [str(n) for n in dict.fromkeys(ids) if str(n) not in model.ids]
            assert done[tool].stored == len(fresh)
            model.new |= set(range(len(model.ids) + 1, len(model.ids) + len(fresh) + 1))
            model.ids += fresh

        @rule(handle=HANDLES, tool=TOOLS)
        def read_for_summary(self, handle, tool):
            records = self.handles[handle].records(self.workspace, [tool])
            if records:
                record = records[0]
                seqs = list(range(record.first_seq, record.last_seq + 1))
                self.read[handle, tool] = (record.guidance_version, seqs)

        @rule(handle=HANDLES, tool=TOOLS)
        def put_guidance(self, handle, tool):
            if (handle, tool) not in self.read:
                self.read_for_summary(handle, tool)
            version, seqs = self.read.pop((handle, tool), (0, [1]))
            model = self.tools.get(tool)
            try:
                self.handles[handle].put_guidance(
                    self.workspace,
                    tool,
                    Guidance(text="x", author="x", covered=seqs),
                    document=Document("x"),
                    expected_version=version,
                )
            except Conflict:
                assert model is None or model.version != version
                return
            assert model.version == version
            model.version += 1
            model.new -= set(seqs)

        @rule(handle=HANDLES, tool=TOOLS, back=st.integers(0, KEEP), score=st.integers(0, 1))
        def judge(self, handle, tool, back, score):
            model = self.tools.get(tool)
            seq = len(model.ids) - back if model is not None else 1
            verdict = Verdict("s", "e", score, not score, JUDGE)
            call = ToolCallResult(tool_name=tool, create_time=NOW).judged(verdict)
            self.handles[handle].update_verdicts(self.workspace, tool, {seq: call})
            if model is not None and seq in model.window:
                model.judged[seq] = score
                model.new.add(seq)
                model.version += 1

        @rule(handle=HANDLES, tool=TOOLS, dice=st.integers(0, 4))
        def delete(self, handle, tool, dice):
            if dice:
                return  # seldom: a deleted tool has to grow again
            gone = self.handles[handle].delete_tools(self.workspace, [tool])
            assert gone == ([tool] if self.tools.pop(tool, None) else [])
            self.read = {key: value for key, value in self.read.items() if key[1] != tool}

        @invariant()
        def every_handle_sees_what_the_model_holds(self):
            for handle in self.handles:
                windows = handle.windows(self.workspace)
                assert [each.record.tool_name for each in windows] == sorted(self.tools)
                for window in windows:
                    model, record = self.tools[window.record.tool_name], window.record
                    assert [each.id for each in window.calls] == model.ids[-KEEP:]
                    assert record.counters.calls == len(model.ids)
                    assert record.counters.judged == len(model.judged)
                    assert record.counters.score_sum == sum(model.judged.values())
                    kept = [model.judged[seq] for seq in model.window if seq in model.judged]
                    assert record.window.calls == len(model.window)
                    assert record.window.judged == len(kept)
                    assert record.window.score_sum == sum(kept)
                    assert record.new == sorted(model.new & set(model.window))

    handles = [open_store(), open_store()]
    case = Writers.TestCase
    case.settings = settings(
        max_examples=3 if kind == "elasticsearch" else 40, stateful_step_count=20, deadline=None
    )
    case("runTest").runTest()
