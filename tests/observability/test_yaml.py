"""YAML files: every mistake is told with file and line, be it in the syntax, in a value, or in how values fit."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron_env import ObservabilityConfig, load_config
from heron_env.errors import ConfigError, DeclarationError
from heron_env.files.yaml_file import YamlFile
from heron_env.observability.config import load_observability

MATRIX = """\
# who sees what
enabled: true
variable_visibility:
  external: [soc]
  internal:
    - secret
matrix:
  - [a, b, insider, 0.1]
  - observer: b
    target: a
    level: external
    noise: 0.2
    law: additive
default:
  level: unaware
"""


def refusal(content: str) -> str:
    """What is said of a file with this content."""
    with pytest.raises(ConfigError) as caught:
        YamlFile.parse(content, "m.yaml").build(ObservabilityConfig)
    return str(caught.value)


def edited(old: str, new: str) -> str:
    """MATRIX with one mistake in it."""
    assert MATRIX.count(old) == 1
    return MATRIX.replace(old, new)


LEVELS = "must be one of 'unaware', 'external', 'insider'."


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    target: a\n", "", "m.yaml:9: matrix[1].target: must be given"),
        ("  level: unaware", "",
         "m.yaml:14: default: must be a mapping with the keys level, noise, law, got nothing (None)"),
        ("law: additive", "law: additive\n    noise: 1.0",
         "m.yaml:14: matrix[1].noise: Duplicate key 'noise', see line 12; keep one"),
        ("# who sees what", "{a: 1, a: 2}",
         "m.yaml:2: is no valid YAML: expected '<document start>', but found '<block mapping start>'"),
        ("  external: [soc]", "  external: [soc", "m.yaml:5: is no valid YAML: expected ',' or ']', but got ':'"),
        ("[soc]", "!!python/name:os.system x",
         "m.yaml:4: is no valid YAML: could not determine a constructor for the tag "
         "'tag:yaml.org,2002:python/name:os.system'"),
        ("[soc]", "2020-99-99",
         "m.yaml:4: variable_visibility.external: '2020-99-99' can't be read: month must be in 1..12; "
         "quote it if it is text"),
        ("[soc]", "&it [*it]",
         "m.yaml:4: variable_visibility.external[0]: an alias (*) leads back to what it is part of; write it out"),
        ("  external: [soc]", "  ? [soc]\n  : 1", "m.yaml:4: is no valid YAML: found unhashable key"),
        ("default:", "---\ndefault:", "m.yaml:14: is no valid YAML: but found another document"),
        ("soc", "*soc", "m.yaml:4: is no valid YAML: found undefined alias 'soc'"),
        ("soc", "so\0c", "m.yaml: is no valid YAML: unacceptable character #x0000: special characters are not allowed"),
    ],
)  # fmt: skip
def test_every_mistake_is_told_with_its_line(old: str, new: str, message: str):
    assert refusal(edited(old, new)) == message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[a, b,", "[no, b,",
         "m.yaml:8: matrix[0].observer: must be text, got False (bool); YAML reads no as False: quote it, 'no'"),
        ("target: a", "target: 007",
         "m.yaml:10: matrix[1].target: must be text, got 7 (int); YAML reads 007 as 7: quote it, '007'"),
        ("- secret", "- 12:30",
         "m.yaml:6: variable_visibility.internal[0]: must be text, got 750 (int); YAML reads 12:30 as "
         "750: quote it, '12:30'"),
        ("enabled", "on",
         "m.yaml:2: True: must be text: it is a key, got True (bool); YAML reads on as True: quote it, 'on'"),
        ("level: unaware", "level: off",
         f"m.yaml:15: default.level: Invalid observability level False (bool); {LEVELS}; YAML reads off "
         "as False: quote it, 'off'"),
        ("0.1", "1e-3",
         "m.yaml:8: matrix[0].noise: must be a number, got '1e-3' (str); YAML reads 1e-3 as text: write 1.0e-3"),
        ("0.1", "1.5E2",
         "m.yaml:8: matrix[0].noise: must be a number, got '1.5E2' (str); YAML reads 1.5E2 as text: write 1.5e+2"),
        ("0.1", "'1e-3'", "m.yaml:8: matrix[0].noise: must be a number, got '1e-3' (str)"),
    ],
)  # fmt: skip
def test_what_yaml_reads_otherwise_than_it_looks_is_explained(old: str, new: str, message: str):
    assert refusal(edited(old, new)) == message


def test_the_advice_about_exponents_is_right():
    for written in ("1.0e-3", "1.5e+2"):
        row = edited("0.1", written)
        assert YamlFile.parse(row, "m.yaml").build(ObservabilityConfig).matrix[0].noise == float(written)


def test_all_mistakes_are_told_at_once_each_with_its_line():
    text = edited("insider", "outsider").replace("true", "maybe").replace("[soc]", "soc")
    assert [line.split(": ")[0] for line in refusal(text).splitlines()] == ["m.yaml:2", "m.yaml:4", "m.yaml:8"]


def test_what_is_written_wins_over_what_is_merged_in_and_is_told_where_it_stands():
    text = "default: &usual\n  noise: 1\nmatrix:\n  - <<: *usual\n    noise: -1\n    observer: a\n"
    assert refusal(text).splitlines()[-1] == "m.yaml:5: matrix[0].noise: must be >= 0, got -1"


def test_a_key_repeated_within_one_line_is_told():
    assert (
        refusal("default: {noise: 0, noise: 1}")
        == "m.yaml:1: default.noise: Duplicate key 'noise', see line 1; keep one"
    )


def test_half_a_character_is_told_by_escapes():
    words = "has half a surrogate pair, which no UTF-8 text can hold; write whole characters"
    assert refusal('matrix: ["x\\udfff"]\n"\\ud800": 1').splitlines() == [
        f"m.yaml:1: matrix[0]: 'x\\udfff' {words}",
        f"m.yaml:2: ['\\\\ud800']: '\\ud800' {words}",
    ]


def test_a_merged_mapping_is_told_where_it_was_written():
    text = "default: &usual\n  noise: -1\nmatrix:\n  - <<: *usual\n    observer: a\n    target: b\n    level: insider\n"
    assert refusal(text).splitlines() == [
        "m.yaml:2: matrix[0].noise: must be >= 0, got -1",
        "m.yaml:2: default.noise: must be >= 0, got -1",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "m.yaml: is empty; it must hold a mapping, `key: value`"),
        ("# nothing\n", "m.yaml: is empty; it must hold a mapping, `key: value`"),
        ("\n- a\n", "m.yaml:2: must hold a mapping, `key: value`, not a list"),
        ("a", "m.yaml:1: must hold a mapping, `key: value`, not a single value"),
        ("[" * 5000, "m.yaml: is nested too deeply"),
    ],
)
def test_what_holds_no_mapping_is_refused(content: str, message: str):
    assert refusal(content) == message


def test_files_that_cannot_be_read_are_told(tmp_path: Path):
    (tmp_path / "matrix.yaml").write_text(MATRIX, "utf-8")
    (tmp_path / "latin.yaml").write_bytes(b"name: K\xf6ln\n")
    cases = {
        tmp_path / "matrx.yaml": ": no such file. Did you mean 'matrix.yaml'?",
        tmp_path / "nowhere" / "x.yaml": ": no such file.",
        tmp_path: ": is a folder; name the YAML file in it",
        tmp_path / "latin.yaml": ": is not UTF-8 (byte 7); save it as UTF-8 text",
        tmp_path / "matrix.yaml" / "x": ": can't be read: ",
    }
    for path, message in cases.items():
        for load in (load_observability, load_config):
            with pytest.raises(ConfigError) as caught:
                load(path)
            assert str(caught.value).startswith(f"{path}{message}")


def test_observability_stands_alone_or_in_its_section(tmp_path: Path):
    alone, section = tmp_path / "alone.yaml", tmp_path / "section.yaml"
    alone.write_text("\ufeff" + MATRIX, "utf-8")
    indented = "".join(f"  {line}\n" for line in MATRIX.splitlines())
    section.write_text(f"note: of another program\nobservability:\n{indented}", "utf-8")
    config = load_observability(str(alone))
    assert config == load_observability(section)
    assert [(row.observer, row.noise, row.law) for row in config.matrix] == [
        ("a", 0.1, "multiplicative"),
        ("b", 0.2, "additive"),
    ]
    section.write_text(section.read_text("utf-8").replace("insider", "Insider"), "utf-8")
    with pytest.raises(DeclarationError) as caught:
        load_observability(section)
    assert str(caught.value).startswith(f"{section}:10: observability.matrix[0].level: Invalid")
    assert caught.value.problems[0].path == ("observability", "matrix", 0, "level")


@given(st.text(max_size=40) | st.text(alphabet="abn:-[]{}&*!|>'\"#,?% \n\t0.e", max_size=60))
def test_no_text_raises_anything_but_config_errors(content: str):
    try:
        config = YamlFile.parse(content, "m.yaml").build(ObservabilityConfig)
    except ConfigError as error:
        assert str(error).startswith("m.yaml")
    else:
        assert config == ObservabilityConfig()
