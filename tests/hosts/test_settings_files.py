"""Hooks come into a user's settings file, and out of it again, and nothing else in it changes."""

from __future__ import annotations

import importlib.util
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hosts.small_host import FileHost, SmallHost
from toolmem.errors import RequestError
from toolmem.hosts.host import HOSTS, Host, host_of
from toolmem.hosts.settings_files import HookPlace, plan_install, plan_uninstall, write_all

COMMAND = ["/opt/a b/python", "-P", "-m", "toolmem.hosts", "small"]
OTHER = {"command": "lint"}
PRESENT = [host_of(name) for name, module in HOSTS.items() if importlib.util.find_spec(module)]
EVERY: list[Host] = [SmallHost(), FileHost(), *PRESENT]

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=6)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
HOOKS = st.sampled_from([None, {}, {"Other": []}, {"Before": [OTHER]}, {"Before": [], "After": [OTHER, OTHER]}])
LAYOUTS = (
    lambda value: json.dumps(value),
    lambda value: json.dumps(value, separators=(",", ":")),
    lambda value: json.dumps(value, indent=2) + "\n",
    lambda value: json.dumps(value, indent="\t", ensure_ascii=False).replace("\n", "\r\n"),
    lambda value: "\ufeff" + json.dumps(value, indent=4),
    lambda value: " \n" + json.dumps(value, separators=(" ,", " :  ")) + "\n\n",
)


@pytest.fixture(autouse=True, scope="module")
def _own_notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What these tests leave installed holds nobody else's store."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def place_of(folder: Path, host: Host | None = None) -> HookPlace:
    return HookPlace(host or SmallHost(), "project", folder / "project", folder / "home", {})


def install(place: HookPlace, command: list[str] = COMMAND) -> None:
    write_all(place.host, plan_install(place, [*command[:-1], place.host.name]), installs=True)


def uninstall(place: HookPlace, command: list[str] = COMMAND) -> list[Path]:
    planned, kept = plan_uninstall(place, [*command[:-1], place.host.name])
    write_all(place.host, planned, installs=False)
    return kept


def settings(place: HookPlace, text: str | None = None) -> Path:
    path = place.settings
    assert path is not None
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return path


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=3), HOOKS, st.sampled_from(LAYOUTS), st.booleans())
def test_a_file_is_the_same_to_the_byte_after_install_and_uninstall(
    value: dict[str, Any], hooks: Any, layout: Any, twice: bool
) -> None:
    with TemporaryDirectory() as folder:
        place = place_of(Path(folder))
        text = layout({**value, **({} if hooks is None else {"hooks": hooks})})
        path = settings(place, text)
        install(place)
        written = path.read_bytes()
        assert written != text.encode()
        if twice:
            install(place)
            assert path.read_bytes() == written
            install(place, ["/new/python", *COMMAND[1:]])
            assert b"/opt/" not in path.read_bytes()
        uninstall(place)
        assert path.read_bytes() == text.encode()


@given(
    st.sampled_from(
        ["", " \n", "{}", "{ }", "{\n}\n", "{\r\n\r\n}", '{"hooks": {}}', '{\n  "hooks": {\n  }\n}', "\ufeff{}"]
    )
)
def test_an_empty_file_is_empty_again(text: str) -> None:
    with TemporaryDirectory() as folder:
        place = place_of(Path(folder))
        path = settings(place, text)
        install(place)
        assert json.loads(path.read_bytes().decode("utf-8-sig"))["hooks"]["Before"]
        uninstall(place)
        assert path.read_bytes() == text.encode()


@pytest.mark.parametrize("host", EVERY, ids=lambda host: host.name)
def test_what_was_not_there_is_gone_again_with_every_agent(tmp_path: Path, host: Host) -> None:
    for scope in ("project", "user"):
        place = HookPlace(host, scope, tmp_path / "project", tmp_path / "home", {})  # type: ignore[arg-type]
        place.project.mkdir(exist_ok=True)
        place.home.mkdir(exist_ok=True)
        install(place)
        assert any(each.is_file() for each in tmp_path.rglob("*"))
        assert all(not each.changes for each in plan_install(place, [*COMMAND[:-1], host.name]))
        assert uninstall(place) == []
        assert sorted(each.name for each in tmp_path.rglob("*")) == ["home", "project"]


@pytest.mark.parametrize(
    "host", [each for each in EVERY if place_of(Path("x"), each).settings], ids=lambda host: host.name
)
@pytest.mark.parametrize("layout", range(len(LAYOUTS)))
def test_other_settings_stay_to_the_byte_with_every_agent(tmp_path: Path, host: Host, layout: int) -> None:
    place = place_of(tmp_path, host)
    text = LAYOUTS[layout]({"model": "x", "permissions": {"deny": ["Read(./.env)"]}, "n": 1.50})
    path = settings(place, text)
    install(place)
    assert b"toolmem" in path.read_bytes()
    uninstall(place)
    assert path.read_bytes() == text.encode()


@pytest.mark.parametrize(
    "host", [each for each in EVERY if place_of(Path("x"), each).settings], ids=lambda host: host.name
)
def test_what_somebody_changed_since_stays_and_our_entries_go(tmp_path: Path, host: Host) -> None:
    place = place_of(tmp_path, host)
    path = settings(place, '{\n    "model": "x"\n}\n')
    install(place)
    path.write_text(path.read_text().replace('"model": "x"', '"model":  "y", "also": 1e3'))
    uninstall(place)
    left = path.read_text().replace(',\n    "version": 1\n', "\n")  # Cursor's file has it, whoever put it there
    assert left == '{\n    "model":  "y", "also": 1e3\n}\n'


def test_a_file_that_cannot_be_parsed_is_refused_with_line_and_column_and_left_alone(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    for text, told in (
        ('{\n  "a": 1,\n  // note\n}', "line 3, column 3"),
        ('{"a": [1, 2}', "line 1, column 12"),
        ("[]", "expected an object"),
        ('{"hooks": []}', "hooks are not as Small"),
    ):
        path = settings(place, text)
        with pytest.raises(RequestError, match=told) as raised:
            plan_install(place, COMMAND)
        assert str(path) in str(raised.value)
        assert path.read_text() == text
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(RequestError, match="line 1: the file is not UTF-8"):
        plan_install(place, COMMAND)
    path.write_bytes('{"a": 1}'.encode("utf-16"))
    with pytest.raises(RequestError, match="UTF-8"):
        plan_install(place, COMMAND)


def test_a_file_that_changed_since_it_was_shown_is_not_written(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    path = settings(place, '{"a": 1}')
    planned = plan_install(place, COMMAND)
    path.write_text('{"a": 2}')
    with pytest.raises(RequestError, match="changed meanwhile"):
        write_all(place.host, planned, installs=True)
    assert path.read_text() == '{"a": 2}'
    assert [each.name for each in path.parent.iterdir()] == ["settings.json"]


def test_mode_and_link_stay(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    path = settings(place, "{}")
    real = tmp_path / "dotfiles" / "small.json"
    real.parent.mkdir()
    path.rename(real)
    path.symlink_to(os.path.relpath(real, path.parent))
    real.chmod(0o640)
    install(place)
    assert path.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "hooks" in json.loads(real.read_text())
    uninstall(place)
    assert path.is_symlink()
    assert real.read_text() == "{}"


def test_files_of_our_own_are_executable_and_removed_only_while_they_are_ours(tmp_path: Path) -> None:
    place = place_of(tmp_path, FileHost())
    place.project.mkdir(parents=True)
    install(place)
    (path,) = place.own_files([*COMMAND[:-1], "filed"])
    assert path.stat().st_mode & stat.S_IXUSR
    assert uninstall(place, ["/another/python", *COMMAND[1:]]) == []  # written by us, with another command
    assert not (tmp_path / "project" / ".filed").exists()
    install(place)
    path.write_text(path.read_text() + "echo mine\n")
    assert uninstall(place) == [path]
    with pytest.raises(RequestError, match="not toolmem's"):
        install(place)
    assert path.read_text().endswith("mine\n")


def test_a_folder_or_a_pipe_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    path = settings(place, "{}")
    path.unlink()
    path.mkdir()
    with pytest.raises(RequestError, match="expected a file"):
        plan_install(place, COMMAND)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(RequestError, match="expected a file"):
        plan_install(place, COMMAND)


def test_what_is_shown_is_what_changes(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    settings(place, '{\r\n  "a": 1\r\n}\r\n')
    (planned,) = plan_install(place, COMMAND)
    shown = planned.difference().splitlines()
    assert shown[0].startswith("--- ")
    assert '-  "a": 1' in shown
    assert '+  "a": 1,' in shown
    assert any("toolmem.hosts" in line for line in shown)
