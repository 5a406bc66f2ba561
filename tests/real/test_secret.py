"""The secret's file: its user alone may read it, what is refused says why, and nothing says the secret."""

import os
import stat
from functools import partial
from pathlib import Path

import pytest
from refusing import refuses, unsaid

from heron_env.errors import ConfigError
from heron_env.real.secret import VARIABLE, new_secret, read_secret

PRIVATE = "what others may have read or written is no secret; write a new one: heron real secret FILE"
WHICH = "name the file that `heron real secret FILE` wrote"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_new_secret_is_read_by_its_user_alone(tmp_path: Path, mask: int):
    before = os.umask(mask)
    try:
        file = new_secret(tmp_path / "folder" / "secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    secret = read_secret(file)
    assert secret is not None and len(secret) == 32
    assert file.read_text() == secret.hex() + "\n"
    assert read_secret(new_secret(tmp_path / "another")) != secret


def test_a_secret_is_never_written_over(tmp_path: Path):
    file = new_secret(tmp_path / "secret")
    (tmp_path / "link").symlink_to("nowhere")
    before = file.read_bytes()
    for path in (file, str(file), tmp_path / "link", "/dev/null"):
        with refuses(
            ConfigError, f"secret={str(path)!r}: it exists, and nodes may have its secret; choose another name"
        ):
            new_secret(path)
    assert file.read_bytes() == before and sorted(os.listdir(tmp_path)) == ["link", "secret"]


def test_the_variable_names_the_file_where_no_option_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert read_secret() is None
    monkeypatch.setenv(VARIABLE, str(new_secret(tmp_path / "by_variable")))
    assert read_secret() == bytes.fromhex((tmp_path / "by_variable").read_text())
    other = new_secret(tmp_path / "by_option")
    assert read_secret(other) == bytes.fromhex(other.read_text())


def test_a_variable_that_leads_nowhere_is_not_taken_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("", str(tmp_path / "missing")):
        monkeypatch.setenv(VARIABLE, name)
        with refuses(ConfigError, f"{VARIABLE}={name!r}: No such file or directory; {WHICH}"):
            read_secret()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o660, 0o644, 0o666, 0o777])
def test_a_file_that_others_may_read_or_write_is_refused(tmp_path: Path, mode: int):
    file = new_secret(tmp_path / "secret")
    file.chmod(mode)
    words = "others may write to it" if mode & 0o022 else f"others may read it, its mode is {mode:04o}"
    with refuses(ConfigError, f"secret={str(file)!r}: {words}; {PRIVATE}"):
        read_secret(file)


def test_another_users_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = new_secret(tmp_path / "secret")
    owner = file.stat().st_uid or 1
    if file.stat().st_uid == 0:
        os.chown(file, owner, -1)
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(ConfigError, match="it belongs to another user; what others may have"):
        read_secret(file)


def test_what_holds_no_secret_is_refused(tmp_path: Path):
    def read_back(content: bytes) -> bytes | None:
        (file := tmp_path / "file").write_bytes(content)
        file.chmod(0o600)
        return read_secret(file)

    wrong = f"it holds no secret, which is 64 hexadecimal digits; {WHICH}"
    digits = b"0123456789abcdef" * 4
    contents = [b"", b"\n", digits[:-1], digits + b"0", b"\xff" * 64, b"g" + digits[1:], b" " + digits, b"\0" * 32]
    os.mkfifo(tmp_path / "pipe")
    cases = [(partial(read_back, content), wrong) for content in contents]
    cases += [
        (lambda: read_back(b"0" * 5_000), "it has more than 1,000 bytes"),
        (lambda: read_secret(tmp_path), "Is a directory; name the file"),
        (lambda: read_secret(tmp_path / "pipe"), "it is a pipe or a device"),
        (lambda: read_secret("/dev/zero"), "others may write to it"),
        (lambda: read_secret("a\0b"), "embedded null byte"),
        (lambda: new_secret("a\0b"), "can't be written: embedded null byte; choose another place"),
        (lambda: new_secret("/proc/secret"), "can't be written: "),
    ]
    assert unsaid(ConfigError, cases) == []


def test_a_newline_of_another_system_and_capitals_do_no_harm(tmp_path: Path):
    secret = bytes(range(32))
    for number, content in enumerate([secret.hex(), secret.hex() + "\r\n", secret.hex().upper() + "\n"]):
        file = tmp_path / str(number)
        file.write_text(content, newline="")
        file.chmod(0o600)
        assert read_secret(file) == secret


@pytest.mark.parametrize("spoilt", ["0", "x", "\ud7ff"])
def test_no_refusal_says_the_secret(tmp_path: Path, spoilt: str):
    """Neither its words nor the errors behind it: one letter too many does not make a secret public."""
    file = new_secret(tmp_path / "secret")
    digits = file.read_text().strip()
    file.write_text(digits + spoilt)
    with pytest.raises(ConfigError) as caught:
        read_secret(file)
    error: BaseException | None = caught.value
    while error is not None:
        assert digits[:8] not in f"{error!r} {error} {vars(error)}"
        error = error.__cause__ or error.__context__
