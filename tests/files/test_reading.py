"""How files are read that anybody may have damaged: with a cap, strictly, and never waiting for a pipe."""

import gzip
import io
import os
import pickle
import zipfile
from pathlib import Path

import pytest

from heron_env.errors import RunFolderError
from heron_env.files.reading import parsed, read, read_json, unpacked
from heron_env.lab.weights import weights_in


def test_a_file_is_read_up_to_its_cap(tmp_path: Path):
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read(file, 5) == b"12345"
    with pytest.raises(ValueError, match="more than 4 bytes"):
        read(file, 4)


def test_what_is_no_file_is_told_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe or a device"):
        read(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe or a device"):
        read("/dev/zero")
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        read(tmp_path)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for _ in range(50):
        with pytest.raises(OSError, match="directory"):
            read(tmp_path)
    assert not before or len(os.listdir("/proc/self/fd")) == before


def test_a_bomb_is_not_unpacked():
    bomb = gzip.compress(bytes(10_000_000))
    assert len(unpacked(bomb, 10_000_000)) == 10_000_000
    with pytest.raises(ValueError, match="more than 9,999,999 bytes"):
        unpacked(bomb, 9_999_999)


@pytest.mark.parametrize(
    "spoil", [lambda b: b[:-3], lambda b: b + b"more", lambda b: b[:-8] + b"x" + b[-7:], lambda b: b""]
)
def test_a_packed_file_is_whole_or_refused(spoil):
    with pytest.raises(ValueError, match="no whole gzip file"):
        unpacked(spoil(gzip.compress(b'{"a": 1}' * 50)))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000, '{"a":' * 100_000, "NaN", "[-Infinity]", "1e999", "1" * 5000, "", "{", b"\xff", '{"a": 1}}',
        '{"a": ["\\ud800"]}', '{"\\uDFFF": 1}', b'"\xed\xa0\x80"',
    ],
    ids=lambda text: ascii(text[:12]),
)  # fmt: skip
def test_what_is_no_strict_json_is_a_value_error(text: str | bytes, tmp_path: Path):
    with pytest.raises(ValueError, match=r"\w"):
        parsed(text)
    (tmp_path / "file").write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(ValueError, match=r"\w"):
        read_json(tmp_path / "file")


def test_a_whole_pair_is_one_character():
    assert parsed(b'{"a": "\\ud83d\\ude00", "b": "\\\\ud800"}') == {"a": "😀", "b": "\\ud800"}


def archive(tmp_path: Path, content: bytes) -> Path:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as new:
        new.writestr("policy.pth", content)
    file = tmp_path / "battery.zip"
    file.write_bytes(packed.getvalue())
    return file


class Runs:
    """What runs when it is unpickled."""

    def __reduce__(self):
        return os.mkdir, ("ran",)


def test_torch_s_advice_to_run_what_is_in_a_file_reaches_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    for content in (pickle.dumps(Runs()), b"nothing", b"", pickle.dumps({"a": 1})):
        with pytest.raises(RunFolderError) as caught:
            weights_in(archive(tmp_path, content).read_bytes(), tmp_path)
        assert "weights_only" not in str(caught.value)
        assert str(caught.value).endswith("; restore the file, or train again")
    assert not (tmp_path / "ran").exists()
