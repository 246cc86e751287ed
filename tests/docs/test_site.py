"""The documentation as a site: complete without a network, every page found, and what would be wrong is seen.

The site is the one that `make docs` built, without a warning; it is not built a second time here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "docs" / "check_site.py"


@pytest.fixture(scope="module")
def site():
    """The site as `make docs` built it, outputs of the cells included."""
    built = ROOT / "docs" / "_build" / "html"
    if not (built / "index.html").is_file():
        reason = "the site is not built: make docs"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return built


def complaints(site: Path) -> str:
    checked = subprocess.run([sys.executable, str(CHECK), str(site)], capture_output=True, text=True, check=False)
    assert (checked.returncode == 1) == bool(checked.stderr.strip())
    return checked.stderr


def test_the_site_loads_nothing_from_outside_and_its_links_lead_somewhere(site):
    assert complaints(site) == ""


@pytest.mark.parametrize(
    ("page", "added", "said"),
    [
        ("index.html", '<script src="https://cdn.example/mathjax.js"></script>', "index.html loads https://cdn"),
        ("rules.html", '<img src="//pictures.example/a.png">', "rules.html loads //pictures"),
        ("limits.html", "<style>@import url(https://fonts.example/a.css)</style>", "limits.html loads"),
        ("index.html", '<a href="how-to/nosuch.html">there</a>', "links to how-to/nosuch.html"),
        ("index.html", '<a href="rules.html#nosuch">there</a>', "no such place"),
        ("rules.html", f"<p>{ROOT}/memory.db</p>", "a path of this machine"),
        ("_static/doctools.js", 'load("https://cdn.example/require.min.js")', "doctools.js loads"),
        ("_static/site.css", "a { background: url(https://pictures.example/a.png) }", "site.css loads"),
    ],
)
def test_what_would_be_wrong_with_a_page_is_seen(site, tmp_path, page, added, said):
    copy = tmp_path / "html"
    shutil.copytree(site, copy)
    path = copy / page
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("</main>", f"{added}</main>") if "</main>" in text else text + added, encoding="utf-8")
    assert said in complaints(copy)


def test_a_page_that_is_too_far_away_or_that_nothing_leads_to_is_seen(site, tmp_path):
    copy = tmp_path / "html"
    shutil.copytree(site, copy)
    for path in copy.rglob("*.html"):
        if path.name != "failures.html":
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace("failures.html", "costs.html"), encoding="utf-8")
    said = complaints(copy)
    assert "how-to/failures.html is more than 3 clicks away" in said
    assert "nothing leads to how-to/failures.html" in said


def test_the_search_index_holds_the_words_of_every_page(site):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    pages = [path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")]
    for page in set(pages) - {"search", "genindex"}:
        assert f'"{page}"' in index


def test_a_search_in_a_browser_finds_the_page(site, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("there is no browser")
    shown = subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--virtual-time-budget=15000", "--dump-dom"),
            *(f"--user-data-dir={tmp_path}/browser", f"file://{site}/search.html?q=ledger"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "how-to/costs.html" in shown.stdout, shown.stderr[-500:]
