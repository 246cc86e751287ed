"""Counting tokens as Qwen models do."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.providers.tokenizer import QwenTokenizer, estimated_tokens


def test_known_counts_of_the_vocabulary():
    counts = {text: QwenTokenizer().count(text) for text in ("", "hello", "hello world", "工具调用", "12345")}
    assert counts == {"": 0, "hello": 1, "hello world": 2, "工具调用": 3, "12345": 5}


def test_ordinary_text_counts_as_the_package_counts_it():
    import dashscope

    vocabulary = dashscope.get_tokenizer("qwen-turbo")
    text = 'Score 1.0: ran.\n```json\n{"summary": "成功", "score": 1.0}\n```\n' * 20
    assert QwenTokenizer().count(text) == len(vocabulary.encode(text))


@pytest.mark.parametrize("sign", ["<|im_start|>", "<|im_end|>", "<|endoftext|>"])
def test_control_signs_in_a_users_text_count_as_plain_text(sign):
    assert QwenTokenizer().count(sign) >= 6


def test_lone_surrogates_count_as_replacement_characters():
    assert QwenTokenizer().count("a\ud800b") == QwenTokenizer().count("a\ufffdb")


@given(st.text(st.characters()))  # surrogates among them
def test_every_text_can_be_counted(text):
    tokens = QwenTokenizer().count(text)
    assert 0 <= tokens <= 12 * len(text)  # one byte is at least one token; NFC can lengthen a character threefold
    assert (tokens == 0) == (text == "")


@pytest.mark.parametrize("unit", ["the quick brown fox ", "a", " ", "\n", "工具", "{}[],:", "e\u0301"])
def test_a_million_characters_are_counted_in_seconds(unit):
    text = (unit * 1_000_000)[:1_000_000]
    started = time.process_time()
    assert QwenTokenizer().count(text) > 0
    assert time.process_time() - started < 4  # measured: up to 0.5 s


def test_many_threads_may_count_at_once():
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(QwenTokenizer().count("one two three"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [3] * 8


def test_the_vocabulary_is_loaded_at_the_first_count_only():
    code = (
        "import sys; from toolmem.providers.tokenizer import QwenTokenizer; tokenizer = QwenTokenizer();"
        "assert not {'dashscope', 'tiktoken'} & set(sys.modules), 'loaded too early';"
        "print(tokenizer.count('hello world'), 'dashscope' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "True"]


def test_without_the_vocabulary_tokens_are_estimated_within_a_tenth_of_what_it_counts():
    pages = [(Path(__file__).parents[2] / "docs" / name).read_text("utf-8") for name in ("rules.md", "limits.md")]
    code = Path(__file__).read_text("utf-8")
    calls = json.dumps([{"tool_name": "search", "input": {"query": f"rain {n}"}, "output": "[]"} for n in range(200)])
    chinese = "请不要给莎拉发邮件，也不要在没有确认的情况下删除任何文件。工具调用失败时请先阅读错误信息。" * 20
    for text in (*pages, code, calls, chinese):
        assert estimated_tokens(text) == pytest.approx(QwenTokenizer().count(text), rel=0.15)
    whole = "\n".join((*pages, code, calls, chinese))
    assert estimated_tokens(whole) == pytest.approx(QwenTokenizer().count(whole), rel=0.1)


@given(st.text(st.characters()))
def test_an_estimate_is_made_of_every_text_and_only_of_nothing_is_it_nothing(text):
    assert (estimated_tokens(text) > 0) == (text != "")
