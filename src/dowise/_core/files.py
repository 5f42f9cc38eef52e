"""Reading and writing files so that whatever goes wrong is said with the path.

A text may be packed by gzip, whatever its name; one that is written to a name in .gz is.

Every file that dowise writes is written whole or not at all: to a draft in the same folder, which
is forced to the disk and then takes the file's place. A write that fails leaves what was there.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from dowise.errors import DowiseError

Result = TypeVar("Result")

_MEGABYTES = 256
_MOST_UNPACKED = _MEGABYTES * 2**20  # a file of a few kilobytes can unpack to terabytes
_GZIP = b"\x1f\x8b"
_OTHERWISE_PACKED = {
    b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd",
}  # fmt: skip
_NO_TEXT = {
    b"SQLite format 3\0": "a database of SQLite, perhaps a store of experiments, and no text: see "
    "that the arguments are in the right order",
    b"PAR1": "a table in Parquet: let its name end in .parquet where a table is wanted",
    b"\x89PNG": "a picture (PNG)", b"\xff\xd8\xff": "a picture (JPEG)", b"GIF8": "a picture (GIF)",
    b"%PDF": "a PDF", b"\xd0\xcf\x11\xe0": "a document of an office program",
}  # fmt: skip
"""What a file is by its first bytes, with the remedy where there is one."""
_SHEETS = (".xlsx", ".xlsm", ".ods")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")

TEMPORARY_SUFFIX = ".draft"  # how the name of a file ends while it is written
_OLD = 3600.0  # seconds: nobody writes a draft for so long


def require_file(path: str | Path) -> Path:
    """The path, once it is known to lead to a file."""
    path = _path(path)
    try:
        if path.is_dir():
            raise DowiseError(
                f"{path} is a folder: give the path of a file in it", code="not-a-file"
            )
        if not path.exists():
            raise DowiseError(f"{path}: there is no such file", code="file-not-found")
    except OSError as error:  # a name too long, a folder that may not be looked into
        raise DowiseError(
            f"{str(path)[:80]}: can't be read ({error.strerror})", code="unreadable-file"
        ) from None
    return path


def file_extension(path: str | Path) -> str:
    """The ending in small letters, that before a .gz: ".bif" of `Asia.BIF.gz`.

    >>> file_extension("Asia.BIF.gz"), file_stem("Asia.BIF.gz"), file_extension("asia")
    ('.bif', 'Asia', '')
    """
    return _unpacked_name(path).suffix.lower()


def file_stem(path: str | Path) -> str:
    """The name without folders and ending."""
    return _unpacked_name(path).stem


def read_file(path: str | Path, parse: Callable[[str], Result]) -> Result:
    """Parse the text of a file, which must be UTF-8, packed by gzip or not."""
    path = require_file(path)
    text = _decoded(path, _unpacked(path, _content(path)))
    if not text.strip():
        raise DowiseError(f"{path}: the file is empty", code="empty-file")
    try:
        return parse(text)
    except DowiseError as error:
        error.args = (f"{path}: {error}",)
        raise


def _content(path: Path) -> bytes:
    try:
        if path.is_file():
            return path.read_bytes()
        with path.open("rb") as file:  # a pipe or a device, which may have no end
            content = file.read(_MOST_UNPACKED + 1)
    except OSError as error:
        raise DowiseError(
            f"{path}: can't be read ({error.strerror})", code="unreadable-file"
        ) from None
    if len(content) > _MOST_UNPACKED:
        raise DowiseError(
            f"{path} gives more than {_MEGABYTES} MB: give a file instead", code="too-large"
        )
    return content


def _unpacked(path: Path, content: bytes) -> bytes:
    if path.suffix.lower() in _SHEETS and content.startswith(b"PK"):
        raise DowiseError(
            f"{path} is a spreadsheet: save the sheet as CSV, and name that file",
            code="unsupported-format",
        )
    for start, packer in _OTHERWISE_PACKED.items():
        if content.startswith(start):
            raise DowiseError(
                f"{path} is packed by {packer}: unpack it, or pack it by gzip",
                code="unsupported-format",
            )
    if not content.startswith(_GZIP):
        return content
    import gzip
    import zlib

    try:
        with gzip.open(io.BytesIO(content)) as file:
            unpacked = file.read(_MOST_UNPACKED + 1)
    except EOFError:
        raise DowiseError(
            f"{path}: the packed file is cut short: copy it once more", code="damaged-file"
        ) from None
    except (OSError, zlib.error):
        raise DowiseError(
            f"{path}: the packed file is damaged: copy it once more", code="damaged-file"
        ) from None
    if len(unpacked) > _MOST_UNPACKED:
        raise DowiseError(
            f"{path}: unpacked it has more than {_MEGABYTES} MB: unpack it first", code="too-large"
        )
    return unpacked


def _decoded(path: Path, content: bytes) -> str:
    try:
        # Bytes, so that a carriage return inside a quoted name survives; utf-8-sig drops the
        # byte order mark that some editors put first.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse_other_kinds(path, content)
        rather = ", it looks like UTF-16" if content.startswith(_UTF_16) else ""
        raise DowiseError(
            f"{path}: byte {error.start + 1} is not UTF-8 text{rather}: save the file as UTF-8",
            code="invalid-encoding",
        ) from None
    if "\0" in text:
        _refuse_other_kinds(path, content)
    return text


def _refuse_other_kinds(path: Path, content: bytes) -> None:
    """Say what a file is that is no text, where its first bytes tell."""
    for start, kind in _NO_TEXT.items():
        if content.startswith(start):
            raise DowiseError(
                f"{path} is {kind}{'' if ':' in kind else ': name a file of text'}",
                code="unsupported-format",
            )


def write_text(path: str | Path, text: str, lasting: bool = True) -> None:
    """Write a text as UTF-8, with the line ends that it has: whole, or not at all.

    It is packed where the name ends in .gz, the same text to the same bytes. `lasting` is that of
    `write_bytes`.
    """
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise DowiseError(
            f"{path}: {error.object[error.start]!r} can't be written", code="invalid-encoding"
        ) from None
    if _path(path).suffix.lower() == ".gz":
        import gzip

        content = gzip.compress(content, mtime=0)
    write_bytes(path, content, lasting)


def write_bytes(path: str | Path, content: bytes, lasting: bool = True) -> None:
    """Write a file whole, or not at all: after an error what was there before is there still.

    One that is not `lasting`, because it goes with this process, is not forced to the disk.
    """
    path = _path(path)
    try:
        if path.exists() and not path.is_file():  # a pipe, a device, a folder
            path.write_bytes(content)
        else:
            _replace(
                path.resolve(), content, lasting
            )  # a link stays a link: what it leads to is replaced
    except (OSError, ValueError, RuntimeError) as error:  # the latter two: names that can't be
        reason = getattr(error, "strerror", None) or error
        if not path.parent.exists():
            reason = f"there is no folder {path.parent}"
        raise DowiseError(f"{path}: can't be written ({reason})", code="unwritable-file") from error


def _replace(path: Path, content: bytes, lasting: bool) -> None:
    if path.exists() and not os.access(path, os.W_OK):  # it could be replaced all the same
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    draft = path.with_name(f".{uuid4().hex[:12]}{TEMPORARY_SUFFIX}")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        if path.exists():
            draft.chmod(stat.S_IMODE(path.stat().st_mode))
        draft.replace(path)
    except BaseException:  # a signal too: no draft is left behind
        draft.unlink(missing_ok=True)
        raise
    if lasting:
        _settle(path.parent)


def remove_stale_temporaries(folder: Path) -> None:
    """Take away what writers that were killed have left, as far as the folder can be changed."""
    for draft in folder.glob(f".{'[0-9a-f]' * 12}{TEMPORARY_SUFFIX}"):
        with suppress(OSError):
            if time.time() - draft.stat().st_mtime > _OLD:
                draft.unlink()


def _settle(folder: Path) -> None:
    """Force the new name to the disk, where the system has a way to do so."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows; a folder that may be written but not read
        return
    try:
        os.fsync(handle)
    except OSError:  # file systems without it
        pass
    finally:
        os.close(handle)


def _unpacked_name(path: str | Path) -> Path:
    path = _path(path)
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def _path(given: str | Path) -> Path:
    if not isinstance(given, str | Path):
        raise DowiseError(
            f"{given!r} is not a path: give a text or a pathlib.Path", code="invalid-type"
        )
    return Path(given)
