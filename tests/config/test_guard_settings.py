"""The section `guard` of the configuration, and the switch in the environment."""

import pytest

from toolmem.config.loading import load
from toolmem.config.memory_settings import GUARD_SOURCES
from toolmem.errors import ConfigError
from toolmem.guard.decision import MODES

ALL_OFF = dict.fromkeys(GUARD_SOURCES, "off")


def loaded(files=(), overrides=(), env=None):
    return load(files, overrides, env=env or {}, dotenv=None)


def modes(found):
    return found.settings.guard.modes


@pytest.fixture
def written(tmp_path):
    def write(text, name="my.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_rules_are_enforced_and_the_other_sources_advise_unless_somebody_says_otherwise():
    found = loaded()
    assert modes(found) == dict(MODES)
    assert found.settings.guard.on_error == "open"


def test_each_source_has_its_mode(written):
    path = written("guard:\n  rules: shadow\n  repeats: enforce\n  names: off\n  on_error: closed\n")
    found = loaded([path])
    assert modes(found) == {"rules": "shadow", "repeats": "enforce", "names": "off", "schema": "advise"}
    assert found.settings.guard.on_error == "closed"
    assert found.origins.of(("guard", "repeats")).endswith("my.yaml:3")


@pytest.mark.parametrize("off", ["off", "'off'", "false"])  # other readers of YAML write false for off
def test_off_is_read_however_a_program_wrote_it(written, off):
    found = loaded([written(f"guard: {off}\n")])
    assert modes(found) == ALL_OFF
    assert found.origins.of(("guard", "schema")).endswith("my.yaml:1")
    assert modes(loaded([written(f"guard: {{rules: {off}}}\n")]))["rules"] == "off"
    assert modes(loaded([], [f"guard={off}"])) == ALL_OFF
    assert modes(loaded([], [f"guard.names={off}"]))["names"] == "off"


def test_a_later_layer_switches_one_source_on_again(written):
    assert modes(loaded([written("guard: off\n")], ["guard.rules=enforce"])) == {**ALL_OFF, "rules": "enforce"}


def test_an_empty_section_is_the_defaults(written):
    assert modes(loaded([written("guard:\nguidance:\n")])) == dict(MODES)


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no", "false", " Off "])
def test_the_environment_switches_all_sources_off_over_files_and_overrides(written, word):
    path = written("guard: {rules: enforce, on_error: closed}\n")
    found = loaded([path], ["guard.repeats=enforce"], env={"TOOLMEM_GUARD": word})
    assert modes(found) == ALL_OFF
    assert found.origins.of(("guard", "rules")) == "environment TOOLMEM_GUARD"


@pytest.mark.parametrize("word", ["on", "1", "yes", "true", "", "  "])
def test_the_environment_switches_nothing_on(written, word):
    path = written("guard: {rules: shadow}\n")
    assert modes(loaded([path], env={"TOOLMEM_GUARD": word})) == {**MODES, "rules": "shadow"}


def test_a_folder_cannot_switch_the_guard_off(tmp_path):
    (tmp_path / ".env").write_text("TOOLMEM_GUARD=off\n")
    assert modes(load([], env={}, dotenv=tmp_path / ".env")) == dict(MODES)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("guard: enforce\n", "guard: expected off, or a section"),
        ("guard: true\n", "guard: expected off, or a section"),
        ("guard: [rules]\n", "guard: expected off, or a section"),
        ("guard: {rule: off}\n", "guard.rule: unknown (did you mean 'rules'"),
        ("guard: {rules: on}\n", "guard.rules: expected one of 'off', 'shadow', 'advise' or 'enforce', got 'on'"),
        ("guard: {rules: true}\n", "guard.rules: expected one of 'off', 'shadow', 'advise' or 'enforce', got true"),
        ("guard: {on_error: deny}\n", "guard.on_error: expected one of 'open' or 'closed', got 'deny'"),
        ("guard: {on_error: false}\n", "guard.on_error: expected one of 'open' or 'closed', got false"),
    ],
)
def test_what_is_no_mode_is_refused_with_its_name_and_what_would_be_right(written, text, told):
    with pytest.raises(ConfigError) as caught:
        loaded([written(text)])
    assert len(caught.value.problems) == 1
    assert told in caught.value.problems[0]
    assert "my.yaml:1" in caught.value.problems[0]


@pytest.mark.parametrize("word", ["maybe", "disabled", "none", "-1", "off!"])
def test_a_word_in_the_environment_that_is_neither_on_nor_off_leaves_it_on_and_is_told(word):
    found = loaded(env={"TOOLMEM_GUARD": word})
    assert modes(found) == MODES
    (told,) = [each for each in found.warnings if "TOOLMEM_GUARD" in each]
    assert f"got '{word}', so the guard stays on" in told


@pytest.mark.parametrize("value", ["enforce", "true", "3"])
def test_an_override_of_the_whole_section_is_off_or_refused(value):
    with pytest.raises(ConfigError, match="guard"):
        loaded([], [f"guard={value}"])
