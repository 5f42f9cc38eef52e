"""Atomic file access, with errors that name the path.

Text files may be compressed with gzip whatever their name; a file whose name ends in .gz is written
compressed.

Writes are atomic: the content goes to a temporary file in the same folder, which is flushed to disk
and then replaces the target. A write that fails leaves the old file as it was.
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

ResultT = TypeVar("ResultT")

_MAX_MEGABYTES = 256
MAX_BYTES = _MAX_MEGABYTES * 2**20  # a file of a few kilobytes can unpack to terabytes
_GZIP = b"\x1f\x8b"
_COMPRESSED = {
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_BINARY_KINDS = {
    b"SQLite format 3\0": (
        "a SQLite database, perhaps a store of experiments, not a text file: check the order of "
        "the arguments"
    ),
    b"PAR1": "a Parquet table: use a name that ends in .parquet",
    b"\x89PNG": "a picture (PNG)",
    b"\xff\xd8\xff": "a picture (JPEG)",
    b"GIF8": "a picture (GIF)",
    b"%PDF": "a PDF",
    b"\xd0\xcf\x11\xe0": "an office document",
}
"""Kinds of files by their first bytes, with a remedy if there is one."""
_SHEETS = (".xlsx", ".xlsm", ".ods")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")

TEMPORARY_SUFFIX = ".draft"
_STALE_AFTER = 3600.0  # seconds: no write takes that long


def require_file(path: str | Path) -> Path:
    """Return the path of an existing file; raise `DowiseError` if there is none."""
    path = _path(path)
    try:
        if path.is_dir():
            raise DowiseError(
                f"{path} is a folder: pass the path of a file in it", code="not-a-file"
            )
        if not path.exists():
            raise DowiseError(f"{path}: there is no such file", code="file-not-found")
    except OSError as error:  # a name too long, a folder without permission
        raise DowiseError(
            f"{str(path)[:80]}: can't be read ({error.strerror})", code="unreadable-file"
        ) from None
    return path


def file_extension(path: str | Path) -> str:
    """Return the lower-case suffix, without .gz: ".bif" for `Asia.BIF.gz`.

    >>> file_extension("Asia.BIF.gz"), file_stem("Asia.BIF.gz"), file_extension("asia")
    ('.bif', 'Asia', '')
    """
    return _uncompressed_name(path).suffix.lower()


def file_stem(path: str | Path) -> str:
    """Return the name without folders and suffixes."""
    return _uncompressed_name(path).stem


def read_file(path: str | Path, parse: Callable[[str], ResultT]) -> ResultT:
    """Parse the text of a UTF-8 file, compressed with gzip or not."""
    path = require_file(path)
    text = _decode(path, _decompress(path, _read_bytes(path)))
    if not text.strip():
        raise DowiseError(f"{path}: the file is empty", code="empty-file")
    try:
        return parse(text)
    except DowiseError as error:
        error.args = (f"{path}: {error}",)
        raise


def _read_bytes(path: Path) -> bytes:
    try:
        if path.is_file():
            return path.read_bytes()
        with path.open("rb") as file:  # a pipe or a device, which may have no end
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise DowiseError(
            f"{path}: can't be read ({error.strerror})", code="unreadable-file"
        ) from None
    if len(content) > MAX_BYTES:
        raise DowiseError(
            f"{path} yields more than {_MAX_MEGABYTES} MB: use a file instead", code="too-large"
        )
    return content


def _decompress(path: Path, content: bytes) -> bytes:
    if path.suffix.lower() in _SHEETS and content.startswith(b"PK"):
        raise DowiseError(
            f"{path} is a spreadsheet: save the sheet as CSV, and pass that file",
            code="unsupported-format",
        )
    for start, program in _COMPRESSED.items():
        if content.startswith(start):
            raise DowiseError(
                f"{path} is compressed with {program}: decompress it, or use gzip",
                code="unsupported-format",
            )
    if not content.startswith(_GZIP):
        return content
    import gzip
    import zlib

    try:
        with gzip.open(io.BytesIO(content)) as file:
            content = file.read(MAX_BYTES + 1)
    except EOFError:
        raise DowiseError(
            f"{path}: the compressed file is truncated: copy it again", code="damaged-file"
        ) from None
    except (OSError, zlib.error):
        raise DowiseError(
            f"{path}: the compressed file is damaged: copy it again", code="damaged-file"
        ) from None
    if len(content) > MAX_BYTES:
        raise DowiseError(
            f"{path}: larger than {_MAX_MEGABYTES} MB when decompressed: decompress it first",
            code="too-large",
        )
    return content


def _decode(path: Path, content: bytes) -> str:
    try:
        # Bytes, so that a carriage return inside a quoted name survives; utf-8-sig drops the
        # byte order mark that some editors put first.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse_binary(path, content)
        guess = ", it looks like UTF-16" if content.startswith(_UTF_16) else ""
        raise DowiseError(
            f"{path}: byte {error.start + 1} is not UTF-8 text{guess}: save the file as UTF-8",
            code="invalid-encoding",
        ) from None
    if "\0" in text:
        _refuse_binary(path, content)
    return text


def _refuse_binary(path: Path, content: bytes) -> None:
    """Raise `DowiseError` if the first bytes show that the file is not a text file."""
    for start, kind in _BINARY_KINDS.items():
        if content.startswith(start):
            raise DowiseError(
                f"{path} is {kind}{'' if ':' in kind else ': pass a text file'}",
                code="unsupported-format",
            )


def write_text(path: str | Path, text: str, lasting: bool = True) -> None:
    """Write UTF-8 text atomically; the line ends are kept.

    A file whose name ends in .gz is compressed, equal texts to equal bytes. `lasting` is that of
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
    """Write a file atomically: after an error the old content is still there.

    If the file is not `lasting`, because it ends with this process, it is not flushed to disk.
    """
    path = _path(path)
    try:
        if path.exists() and not path.is_file():  # a pipe, a device, a folder
            path.write_bytes(content)
        else:
            _replace(path.resolve(), content, lasting)  # a link stays a link: its target changes
    except (OSError, ValueError, RuntimeError) as error:  # the latter two: impossible names
        reason = getattr(error, "strerror", None) or error
        if not path.parent.exists():
            reason = f"there is no folder {path.parent}"
        raise DowiseError(f"{path}: can't be written ({reason})", code="unwritable-file") from error


def _replace(path: Path, content: bytes, lasting: bool) -> None:
    if path.exists() and not os.access(path, os.W_OK):  # a replacement would succeed
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
        _flush_folder(path.parent)


def remove_stale_temporaries(folder: Path) -> None:
    """Remove temporary files that killed writers left, as far as permissions allow."""
    for draft in folder.glob(f".{'[0-9a-f]' * 12}{TEMPORARY_SUFFIX}"):
        with suppress(OSError):
            if time.time() - draft.stat().st_mtime > _STALE_AFTER:
                draft.unlink()


def _flush_folder(folder: Path) -> None:
    """Flush the new name to disk if the system supports it."""
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


def _uncompressed_name(path: str | Path) -> Path:
    path = _path(path)
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def _path(path: str | Path) -> Path:
    if not isinstance(path, str | Path):
        raise DowiseError(
            f"{path!r} is not a path: pass a str or a pathlib.Path", code="invalid-type"
        )
    return Path(path)
