"""Stores, judges, writers, embedders and chat models of one's own: handed over, registered, or installed; and named."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from toolmem import ToolCall, ToolMem
from toolmem.app import ToolMemApp
from toolmem.config import load, sockets
from toolmem.errors import ConfigError
from toolmem.flow.effective import effective
from toolmem.flow.runner import SystemClock
from toolmem.models import Guidance, JudgeIdentity, Verdict
from toolmem.protocols import Completion, EmbedderIdentity
from toolmem.providers.hashing import HashingEmbedder
from toolmem.store.sqlite import SqliteStore

PARSE = "op.parse_tool_call_result_op"
SUMMARY = "op.summary_tool_memory_op"
NO_PACING = [f"{PARSE}.params.evaluation_sleep_interval=0", f"{SUMMARY}.params.summary_sleep_interval=0"]


class StrictJudge:
    identity = JudgeIdentity(backend="strict", model="nothing_passes", prompt_version="1")
    paid = False

    async def judge(self, call, schema, purpose):
        return Verdict(
            summary="asked", evaluation="not good enough", score=0.0, execution_failed=False, judge=self.identity
        )


class TerseWriter:
    author = "terse/one_line"
    prompt_version = edit_version = "1"

    async def write(self, tool_name, calls, old, purpose):
        return self._guidance([call.seq for call in calls])

    async def edit(self, tool_name, window, new, old, purpose):
        return self._guidance(list(new))

    def _guidance(self, covered):
        return Guidance(text="Be terse.", covered=covered, author=self.author, prompt_version="1")


class OnesEmbedder:
    def __init__(self, dimensions=3, model_name="ones"):
        self.identity = EmbedderIdentity("ones", model_name, dimensions)

    async def embed(self, texts):
        return np.full((len(texts), self.identity.dimension), self.identity.dimension**-0.5, dtype=np.float32)


class ParrotModel:
    backend = "parrot"

    def __init__(self, *, phrase, model_name="polly"):
        self.model, self.phrase, self.closed = model_name, phrase, False

    async def complete(self, prompt, purpose, *, json_reply=False):
        reply = json.dumps({"summary": "s", "evaluation": self.phrase, "score": 1.0})
        text = f"```json\n{reply}\n```"
        return Completion(text, prompt_tokens=1, completion_tokens=1)


class FolderStore(SqliteStore):
    def __init__(self, *, clock, embedder, folder):
        super().__init__(f"{folder}/own.db", clock=clock, embedder=embedder)


@pytest.fixture(autouse=True)
def _sockets_of_this_test_alone(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("STORES", "EMBEDDERS", "CHAT_MODELS", "JUDGES", "WRITERS"):
        monkeypatch.setattr(getattr(sockets, name), "_made", {})
        monkeypatch.setattr(getattr(sockets, name), "_broken", {})


def installed(tmp_path, module, text, **entries):
    """A package as an installation leaves it: a module, and entry points by group."""
    (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
    info = tmp_path / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    lines = [f"[toolmem.{group}]\n{entry}\n" for group, entry in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))


def added(mem):
    mem.add([ToolCall("search", {"q": "rain"}, output="[]")])
    request = {"workspace_id": "default", "tool_names": "search", "include_calls": True}
    (memory,) = mem.app.run("retrieve_tool_memory", **request).metadata["memory_list"]
    return memory["tool_call_results"][0]


# -- handed over


def test_instances_are_used_by_the_names_of_the_configuration_and_default_where_none_is_named(tmp_path):
    embedder = OnesEmbedder()
    store = SqliteStore(tmp_path / "mine.db", clock=SystemClock(), embedder=embedder.identity)
    given = {"stores": store, "judges": StrictJudge(), "writers": TerseWriter(), "embedders": embedder}
    with ToolMem(**{kind: {"default": one} for kind, one in given.items()}) as mem:
        assert added(mem)["evaluation"] == "not good enough"
        mem.summarize("search")
        assert mem.guidance("search").text.endswith("\nBe terse.")
        assert mem.app.call(mem.app.services.store_named()).location == str(tmp_path / "mine.db")
    assert (tmp_path / "mine.db").exists()
    assert not (tmp_path / ".toolmem").exists()
    with ToolMem(stores={"default": store}, embedders={"default": embedder}) as again:
        assert again.guidance("search").text.endswith("\nBe terse.")


def test_an_op_names_a_judge_and_a_writer_that_were_handed_over(tmp_path):
    overrides = [f"{PARSE}.judge=strict", f"{SUMMARY}.writer=terse"]
    with ToolMem(
        "m.db", overrides=overrides, judges={"strict": StrictJudge()}, writers={"terse": TerseWriter()}
    ) as mem:
        assert added(mem)["judge"]["model"] == "nothing_passes"
        mem.summarize("search")
        assert mem.guidance("search").text.endswith("\nBe terse.")
    with ToolMem("m.db", judges={"strict": StrictJudge()}) as mem:  # handed over, and named by nobody
        assert mem.add([ToolCall("search", {"q": "sun"}, output="[]")]).stored == 1
        counts = mem.app.call(mem.app.services.judge(next(mem.app.flows["rejudge"].ops())))
        assert counts.identity.backend == "offline"


def test_a_judge_of_ones_own_needs_no_key_of_a_model(tmp_path, monkeypatch):
    monkeypatch.delenv("DASHSCOPE_API_KEY", raising=False)
    with ToolMem("m.db", overrides=["llm.default.backend=dashscope"], judges={"default": StrictJudge()}) as mem:
        assert added(mem)["score"] == 0.0
        with pytest.raises(ConfigError, match="api_key"):
            mem.summarize("search")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"judges": {"x": StrictJudge}}, r"judges\['x'\]: StrictJudge is a class; hand over an instance"),
        ({"judges": {"x": TerseWriter()}}, r"judges\['x'\]: TerseWriter has no identity, paid, judge"),
        ({"stores": {"x": object()}}, r"stores\['x'\]: object has no open, close"),
        (
            {"embedders": {"defalt": OnesEmbedder()}},
            r"embedders\['defalt'\]: no .*did you mean 'default'",
        ),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_is_done(tmp_path, given, told):
    with pytest.raises(ConfigError, match=told):
        ToolMem(**given)
    assert list(tmp_path.iterdir()) == []


# -- registered, and named in YAML


def test_registered_backends_are_named_in_yaml_and_get_their_params_as_keywords(tmp_path):
    sockets.register_store("folder", FolderStore)
    sockets.register_embedder("ones", OnesEmbedder)
    sockets.register_chat_model("parrot", ParrotModel)
    sockets.register_judge("strict", StrictJudge)
    sockets.register_writer("terse", TerseWriter)
    (tmp_path / "my.yaml").write_text(
        f"vector_store: {{default: {{backend: folder, params: {{folder: '{tmp_path}'}}}}}}\n"
        "embedding_model: {default: {backend: ones, model_name: seven, params: {dimensions: 7}}}\n"
        "llm: {default: {backend: parrot, params: {phrase: hello}}}\n"
        "op:\n  summary_tool_memory_op: {writer: terse}\n  rejudge_op: {judge: strict}\n"
    )
    with ToolMem("my.yaml", overrides=NO_PACING) as mem:
        assert added(mem)["evaluation"] == "hello"
        mem.summarize("search")
        assert mem.guidance("search").text.endswith("\nBe terse.")
        mem.app.run("rejudge", workspace_id="default", tool_names="search", force=True)
        assert mem.app.call(mem.app.services.store_named()).location == str(tmp_path / "own.db")
        assert mem.app.services.embedder_of_store().identity == EmbedderIdentity("ones", "seven", 7)
        rows = {row.name: row.value for row in effective(mem.app.configured)}
    assert rows["vector_store.default.params.folder"] == str(tmp_path)
    assert rows["embedding_model.default.params.dimensions"] == "7"
    assert rows["op.rejudge_op.judge"] == "strict"
    assert "llm.default.params.timeout" not in rows


def test_params_that_the_class_does_not_take_are_told_by_name(tmp_path):
    sockets.register_store("folder", FolderStore)
    sockets.register_chat_model("parrot", ParrotModel)
    overrides = ["vector_store.default.backend=folder", "vector_store.default.params.foldr=x"]
    with pytest.raises(ConfigError) as caught:
        load(overrides=[*overrides, "vector_store.default.params.clock=1", "llm.default.backend=parrot"], dotenv=None)
    assert caught.value.problems == [
        "llm.default.params.phrase: missing",
        "vector_store.default.params.clock: toolmem itself hands over 'clock'",
        "vector_store.default.params.foldr: unknown (did you mean 'folder'?)",
        "vector_store.default.params.folder: missing",
    ]


def test_a_class_that_raises_is_told_with_its_section():
    def failing(*, clock, embedder):
        raise OSError("no route to it")

    sockets.register_store("failing", failing)
    with pytest.raises(ConfigError, match=r"vector_store\.default: the .* 'failing' cannot be made: OSE"):
        ToolMemApp(overrides=["vector_store.default.backend=failing"]).run(
            "retrieve_tool_memory", workspace_id="w", tool_names="x"
        )


def test_the_params_of_built_in_backends_stay_typed():
    with pytest.raises(ConfigError) as caught:
        load(overrides=["llm.default.backend=dry_run", "llm.default.params.phrase=x"], dotenv=None)
    (problem,) = caught.value.problems
    assert problem.startswith("llm.default.params.phrase: unknown (")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("sqlite", "one of toolmem's own"),
        ("memory", "one of toolmem's own"),
        ("a b", "letters, digits"),
        ("", "letters"),
    ],
)
def test_a_name_that_cannot_be_used_is_not_registered(name, told):
    with pytest.raises(ConfigError, match=told):
        sockets.register_store(name, FolderStore)
    sockets.register_store("mine", FolderStore)
    with pytest.raises(ConfigError, match="has the name already"):
        sockets.register_store("mine", OnesEmbedder)
    with pytest.raises(ConfigError, match="expected a class"):
        sockets.register_store("other", 3)


def test_a_name_that_nobody_knows_is_told_with_those_that_there_are():
    sockets.register_judge("strict", StrictJudge)
    overrides = [f"{PARSE}.judge=strct", f"{SUMMARY}.writer=terse", "embedding_model.default.backend=onse"]
    sockets.register_embedder("ones", OnesEmbedder)
    with pytest.raises(ConfigError) as caught:
        ToolMemApp(overrides=overrides, judges={"lenient": StrictJudge()})
    told = "\n".join(caught.value.problems)
    assert f"{PARSE}.judge: no judge is called 'strct' (did you mean 'strict'?); there are strict, lenient" in told
    assert f"{SUMMARY}.writer: no writer is called 'terse'" in told
    assert (
        "no embedding backend is called 'onse' (did you mean 'ones'?); there are multilingual, hashing, fastembed"
        in told
    )


# -- installed


def test_an_installed_package_is_found_by_the_name_of_its_entry_point_and_only_then_loaded(tmp_path):
    text = "import marker_of_loading\nfrom toolmem.providers.hashing import HashingEmbedder as Embedder\n"
    (tmp_path / "marker_of_loading.py").write_text("")
    installed(tmp_path, "own_embedders", text, embedders="tiny = own_embedders:Embedder")
    load(dotenv=None)
    with pytest.raises(ConfigError, match="did you mean 'tiny'"):
        load(overrides=["embedding_model.default.backend=tinny"], dotenv=None)
    assert "marker_of_loading" not in sys.modules
    with ToolMemApp(overrides=["embedding_model.default.backend=tiny"]) as app:
        assert isinstance(app.services.embedder_of_store(), HashingEmbedder)
    assert "marker_of_loading" in sys.modules


def test_an_entry_point_that_cannot_be_loaded_is_told_to_who_asks_for_its_name_alone(tmp_path):
    installed(tmp_path, "own_judges", "import what_nobody_has\n", judges="careful = own_judges:Judge")
    ToolMemApp()
    with pytest.raises(ConfigError) as caught:
        ToolMemApp(overrides=[f"{PARSE}.judge=careful"])
    reason = "ModuleNotFoundError: No module named 'what_nobody_has'"
    told = f"{PARSE}.judge: the entry point 'careful' of 'toolmem.judges' cannot be loaded: {reason}"
    assert caught.value.problems == [told]


# -- what goes wrong in them

RAIN = ToolCall("search", {"q": "rain"}, output="[]")


class Raising(StrictJudge):
    async def judge(self, call, schema, purpose):
        raise KeyError(call.input["q"] + " sun" * 1_000_000)


class Silent(StrictJudge):
    async def judge(self, call, schema, purpose):
        return None


class Wordy(StrictJudge):
    async def judge(self, call, schema, purpose):
        return "worked"


class Parsing(StrictJudge):
    async def judge(self, call, schema, purpose):
        raise ValueError(f"not a number: {call.input['password']}")


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (Raising, "the judge strict/nothing_passes@1 raised KeyError: 'rain sun"),
        (Silent, "the judge strict/nothing_passes@1 answered NoneType, not Verdict"),
        (Wordy, "the judge strict/nothing_passes@1 answered str, not Verdict"),
    ],
)
@pytest.mark.parametrize("paid", [False, True])
def test_a_call_of_which_a_judge_of_ones_own_makes_nothing_is_kept_unscored_and_named(broken, told, paid):
    class Mixed(broken):
        async def judge(self, call, schema, purpose):
            wanted = broken if call.input["q"] == "rain" else StrictJudge
            return await wanted.judge(self, call, schema, purpose)

    judge = Mixed()
    judge.paid = paid
    with ToolMem("m.db", overrides=NO_PACING, judges={"default": judge}) as mem:
        done = mem.add([RAIN, ToolCall("search", {"q": "snow"}, output="[]")])
        (failure,) = done.failures
        assert failure.error.startswith(told)
        assert len(failure.error) < 600
        rain, snow = mem.calls(["search"]).records()
        assert (rain.evaluation_status, rain.score, snow.score) == ("failed", None, 0.0)
    with ToolMem("m.db", judges={"default": StrictJudge()}) as mem:
        assert mem.retry_evaluations().success


def test_what_a_judge_of_ones_own_raises_is_kept_without_the_secrets_of_its_call():
    with ToolMem("m.db", judges={"default": Parsing()}) as mem:
        done = mem.add([ToolCall("login", {"password": "hunter2-and-more"}, output="[]")])
        assert "not a number" in done.failures[0].error
        assert "hunter2" not in str(done.metadata)
        assert "hunter2" not in str(mem.calls(["login"]))


def test_a_judge_and_a_writer_of_ones_own_need_not_be_async():
    class Plain(StrictJudge):
        def judge(self, call, schema, purpose):
            return Verdict(summary="", evaluation="plainly", score=1.0, execution_failed=False, judge=self.identity)

    class PlainWriter(TerseWriter):
        def write(self, tool_name, calls, old, purpose):
            return self._guidance([])

    with ToolMem("m.db", judges={"default": Plain()}, writers={"default": PlainWriter()}) as mem:
        assert added(mem)["evaluation"] == "plainly"
        assert mem.summarize("search").success


@pytest.mark.parametrize("way", ["raises", "answers None"])
@pytest.mark.parametrize("policy", ["smart_skip", "incremental"])
def test_guidance_stays_where_a_writer_of_ones_own_fails_and_the_other_tools_go_on(way, policy):
    class Failing(TerseWriter):
        async def write(self, tool_name, calls, old, purpose):
            if tool_name != "search":
                return await super().write(tool_name, calls, old, purpose)
            if way == "raises":
                raise ZeroDivisionError("no calls")
            return None

        async def edit(self, tool_name, window, new, old, purpose):
            return await self.write(tool_name, window, old, purpose)

    overrides = [
        *NO_PACING,
        f"{SUMMARY}.params.policy={policy}",
    ]
    calls = [RAIN, ToolCall("send", {"to": "a"}, output="[]")]
    with ToolMem("m.db", overrides=NO_PACING, writers={"default": TerseWriter()}) as mem:
        mem.add(calls)
        mem.summarize(["search", "send"])
    with ToolMem("m.db", overrides=overrides, writers={"default": Failing()}) as mem:
        mem.add([ToolCall(call.tool_name, call.input, output="[1]") for call in calls])
        done = mem.summarize(["search", "send"])
        told = "raised ZeroDivisionError: no calls" if way == "raises" else "answered NoneType, not Guidance"
        assert [(each.tool, each.action) for each in done] == [("search", "failed"), ("send", "summarized")]
        assert done.metadata["failures"] == [{"tool_name": "search", "error": f"the writer terse/one_line {told}"}]
        assert mem.guidance("search").text.endswith("\nBe terse.")
