"""A number with '_' in it is none, in files and on the command line: Python alone reads 1_0 as 10."""

import re

import pytest
from typer.testing import CliRunner

from heron_env.cli import app
from heron_env.errors import ConfigError
from heron_env.files.reading import decimal, whole_decimal
from heron_env.files.yaml_file import YamlFile
from heron_env.lab.run_files import CurvePoint
from heron_env.lab.schedules import with_settings
from heron_env.lab.sweep.conditions import parsed_axis
from heron_env.scheduling.timing import ScheduleConfig


def test_digits_are_ascii_and_stand_together():
    for text in ["1_0", "1_000.5", "1e1_0", "0.1_5", "\u0661\u0660", "\uff11\uff10"]:
        assert float(text) > 0.0, "Python reads it"
        for read in (decimal, whole_decimal):
            with pytest.raises(ValueError):
                read(text)


def test_plain_numbers_are_read():
    assert [decimal(text) for text in ("10", " -1.5 ", "1e-3", "+.5")] == [10.0, -1.5, 1e-3, 0.5]
    assert whole_decimal(" 12 ") == 12


def test_yaml_has_no_number_with_an_underscore():
    for text, words in [
        ("a: 1_0\n", "m.yaml:1: a: 1_0 is read as 10 by YAML: write 10, or quote it if it is text"),
        ("a:\n  - 3\n  - 1_0.5\n", "m.yaml:3: a[1]: 1_0.5 is read as 10.5 by YAML"),
        ("1_0: a\n", "m.yaml:1: ['1_0']: 1_0 is read as 10 by YAML"),
    ]:
        with pytest.raises(ConfigError, match=re.escape(words)):
            YamlFile.parse(text, "m.yaml")


def test_words_with_underscores_stay_words():
    assert YamlFile.parse("a_1: ['1_0', _1, zone_1]\n", "m.yaml").data == {"a_1": ["1_0", "_1", "zone_1"]}


def test_a_schedule_in_a_file_has_none(tmp_path):
    (tmp_path / "net.yaml").write_text('"*": {msg_delay: 1_0}\n')
    with pytest.raises(ConfigError, match=r"net.yaml:1: .*msg_delay: 1_0 is read as 10 by YAML"):
        with_settings(ScheduleConfig(), [str(tmp_path / "net.yaml")])


def test_options_have_none():
    for arguments in [
        ["sweep", "heron/BatteryGrid-v0", "--seeds", "1_0"],
        ["sweep", "heron/BatteryGrid-v0", "--seeds=1_0"],
        ["sweep", "heron/BatteryGrid-v0", "--cases", "1_0"],
        ["sweep", "heron/BatteryGrid-v0", "--axis", "act_delay=0,1_0"],
        ["sweep", "heron/BatteryGrid-v0", "--axis", "act_delay=field:1_0/system:2"],
        ["run", "heron/BatteryGrid-v0", "--schedule", "msg_delay=1_0"],
        ["margin", "heron/Spread-v0", "assigned landmark", "--keep", "9_5%"],
        ["dcop", "solve", "g15", "--seed", "1_0"],
    ]:
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2 and "1_0" in result.output.replace("9_5", "1_0"), result.output
        assert arguments[-1].startswith("--") or arguments[-2] in result.output


def test_an_axis_has_none():
    with pytest.raises(ConfigError, match="'0,1_0' must be numbers separated by commas"):
        parsed_axis("act_delay=0,1_0")


def test_a_learning_curve_has_none():
    for field in ["transitions", "seconds", "training_signal"]:
        row = {"group": "a_1", "transitions": "10", "seconds": "1", "training_signal": "0", "validation_return": "nan"}
        assert CurvePoint.model_validate(row).group == "a_1"
        with pytest.raises(ValueError, match=field):
            CurvePoint.model_validate({**row, field: "1_0"})
