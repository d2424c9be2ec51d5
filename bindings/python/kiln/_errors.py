"""What Kiln refuses or fails at, as exceptions. One class a code; `Error` is all of them."""

from __future__ import annotations

TYPE_CHECKING = False  # typing costs more to import than all of this
if TYPE_CHECKING:
    from typing import Any


class Error(Exception):
    """What Kiln refused or failed at: what, where, and what was expected.

    `code` is its name in lower case ("type_mismatch"), `plugin` and `node` what is at fault, where that is known, else
    "". `report` is what explains it (of a compile, its report as far as it came), or None.
    """

    code: str = "internal"
    plugin: str = ""
    node: str = ""
    report: dict[str, Any] | None = None


class InvalidArgument(Error, ValueError):
    """An argument that is none."""

    code = "invalid_argument"


class TypeMismatch(Error, TypeError, ValueError):
    """Element types, shapes or Python types that do not fit."""

    code = "type_mismatch"


class Overflow(TypeMismatch, OverflowError):
    """A Python number that an element type does not hold."""


class UnknownName(Error, ValueError):
    """An op, attribute, option, pass, slot, tensor or path that there is not."""

    code = "unknown_name"


class Unimplemented(Error, NotImplementedError):
    """What Kiln cannot do yet."""

    code = "unimplemented"


class Invariant(Error, ValueError):
    """A graph that breaks one."""

    code = "invariant"


class NotCached(Error):
    """`require_hit`, and no hit; the report has the lookup's reason."""

    code = "not_cached"


class Cancelled(Error):
    """An event's receiver ended it."""

    code = "cancelled"


class OutOfMemory(Error, MemoryError):
    """There is not enough memory; all is as it was before."""

    code = "out_of_memory"


class Busy(Error, RuntimeError):
    """A call that another thread uses."""

    code = "busy"


class PluginFailed(Error, RuntimeError):
    """A pass, op or function failed; `plugin` and the cause tell more."""

    code = "plugin_failed"


class FileError(Error, OSError):
    """A file that cannot be read or written. `errno` and `filename` as of any OSError, where they are known."""

    code = "io"

    def __str__(self) -> str:
        return str(self.args[0])


class FileNotFound(FileError, FileNotFoundError):
    """A file that there is not."""


class FileForbidden(FileError, PermissionError):
    """A file that one may not read or write."""


class Corrupt(Error, ValueError):
    """A damaged file."""

    code = "corrupt"


class Incompatible(Error):
    """Of another version, build or CPU."""

    code = "incompatible"


class NoDevice(Error, RuntimeError):
    """A device that there is not."""

    code = "no_device"


class OutOfRange(Error, IndexError):
    """An index or a number that is out of range."""

    code = "out_of_range"


class Internal(Error, RuntimeError):
    """A bug of Kiln's."""

    code = "internal"


# By the numbers of kiln/types.h.
_CLASSES: tuple[type[Error], ...] = (
    Error, InvalidArgument, TypeMismatch, UnknownName, Unimplemented, Invariant, NotCached, Cancelled, OutOfMemory,
    Busy, PluginFailed, FileError, Corrupt, Incompatible, NoDevice, OutOfRange, Internal,
    PluginFailed)  # the last of what a callback raised


def file_error(number: int | None, message: str, path: str | None = None) -> FileError:
    """The exception of a file, whose class goes by the system's number of what is wrong."""
    import errno
    kinds = {errno.ENOENT: FileNotFound, errno.EACCES: FileForbidden, errno.EPERM: FileForbidden}
    error = kinds.get(number or 0, FileError)(message)
    error.errno, error.filename = number, path
    return error


def _errno_of(message: str) -> int | None:
    """The system's number, of which the library gives the text."""
    import errno
    import os
    return next((number for number in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.ENOSPC)
                 if os.strerror(number) in message), None)


def make(code: int, message: str, plugin: str, node: str, report: dict[str, Any] | None,
         cause: BaseException | None) -> Error:
    """The exception of an error of the library's."""
    made = _CLASSES[code] if code < len(_CLASSES) else Error
    error = file_error(_errno_of(message), message) if made is FileError else made(message)
    error.plugin, error.node, error.report = plugin, node, report
    error.__cause__ = cause
    return error
