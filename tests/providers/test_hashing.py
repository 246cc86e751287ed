"""The hashing embedder: stable, unit length, near for what is spelled alike."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolmem.errors import RequestError
from toolmem.providers.hashing import HashingEmbedder

PRINT_VECTORS = """
import hashlib
from toolmem.providers.hashing import HashingEmbedder
texts = ["send_email to Sarah", "发送邮件 メール", "", "naïve ﬁle ½", "x" * 5000, "日", "\\ud800?"]
print(hashlib.sha256(HashingEmbedder(64).vectors(texts).round(5).tobytes()).hexdigest())
"""


def cosine(embedder: HashingEmbedder, one: str, other: str) -> float:
    left, right = embedder.vectors([one, other])
    return float(left @ right)


def test_every_process_makes_the_same_vectors():
    digests = {
        subprocess.run(
            [sys.executable, "-c", PRINT_VECTORS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


# " ab " has six n-grams: ' a', 'ab', 'b ', ' ab', 'ab ', ' ab '; each is one sixth of the squared length.
GOLDEN_AB = {3: 6**-0.5, 8: 6**-0.5, 12: 6**-0.5, 13: -(6**-0.5), 14: 6**-0.5, 15: -(6**-0.5)}


def test_the_vectors_are_those_of_the_version_named_in_the_identity():
    vector = HashingEmbedder(16).vectors(["ab"])[0]
    expected = np.zeros(16)
    for bucket, value in GOLDEN_AB.items():
        expected[bucket] = value
    np.testing.assert_allclose(vector, expected, atol=1e-6)


async def test_rows_are_float32_of_unit_length_and_zero_without_content():
    embedder = HashingEmbedder()
    vectors = await embedder.embed(["search the web", "", "...!", "邮", "a"])
    assert vectors.dtype == np.float32
    assert vectors.shape == (5, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 0, 1, 1], atol=1e-6)
    assert embedder.identity.dimension == 384
    assert embedder.identity.name == "hashing"


async def test_no_texts_give_no_rows():
    assert (await HashingEmbedder().embed([])).shape == (0, 384)


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("sending emails", "send_email: sends an email to a contact", "sql_execute: run a query on the database"),
        ("执行数据库查询", "数据库查询工具", "发送邮件给联系人"),
        ("sendEmail", "send_email", "resend_mails_to_all"),
        ("CAFÉ Menü", "café menü", "cage men"),
    ],
)
def test_what_is_spelled_alike_lies_nearer(query: str, near: str, far: str):
    embedder = HashingEmbedder()
    assert cosine(embedder, query, near) > cosine(embedder, query, far) + 0.1


def test_case_and_separators_do_not_matter():
    assert cosine(HashingEmbedder(), "Send E-Mail", "send_e_mail") == pytest.approx(1.0)


def test_a_word_repeated_counts_less_than_it_is_long():
    embedder = HashingEmbedder()
    assert cosine(embedder, "timeout error", "timeout " * 50 + "error") > 0.75


@given(st.lists(st.text(max_size=40), max_size=8))
def test_a_text_has_the_same_vector_alone_and_in_any_company(texts: list[str]):
    embedder = HashingEmbedder(64)
    together = embedder.vectors(texts)
    alone = [embedder.vectors([text])[0] for text in texts]
    np.testing.assert_array_equal(together, np.array(alone).reshape(len(texts), 64))
    lengths = np.linalg.norm(together, axis=1)
    assert all(abs(length - 1) < 1e-5 or length == 0 for length in lengths)


def test_long_batches_are_cut_where_no_text_is_split():
    embedder = HashingEmbedder(64)
    texts = [f"text number {i} " * 200 for i in range(150)]
    np.testing.assert_array_equal(
        embedder.vectors(texts)[[0, 77, 149]], embedder.vectors([texts[0], texts[77], texts[149]])
    )


def test_a_dimension_too_small_to_tell_texts_apart_is_refused():
    with pytest.raises(RequestError, match="dimension"):
        HashingEmbedder(2)
