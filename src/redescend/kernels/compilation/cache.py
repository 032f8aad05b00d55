"""The cache of compiled kernels on disk: checked before it is trusted, and done without where no folder is writable.

Numba reads its cache with pickle, so each file begins with a digest of the rest, of the version of Numba and of the
sources of the kernels: what was truncated, damaged or written by another version is compiled again and replaced. A
digest is no signature, so a folder is used only if it belongs to this user or to root, and if not everybody may write
to it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core import caching
from numba.core.runtime import rtsys

VARIABLE = "REDESCEND_CACHE_DIR"
"""Environment variable that names a folder for the cache."""

UNCACHED = (
    "Compiling, which takes 3 to 8 seconds. No folder is writable, so compiled code is not kept for the next run; "
    f"to keep it, set {VARIABLE} to a folder of yours."
)

DIGEST = hashlib.sha256().digest_size

Announce = Callable[..., None]


class KernelCache(caching.NullCache):
    """The cache of a kernel, which is opened when the kernel is first called.

    Whatever is wrong with it, the kernel can be compiled. `stamp` returns what identifies the sources of a file;
    `announce` is called when something has to be compiled, with the reason if it is an unusual one.
    """

    def __init__(self, function: Any, stamp: Callable[[str], str], announce: Announce) -> None:
        self._function, self._stamp, self._announce = function, stamp, announce

    @functools.cached_property
    def files(self) -> _Files | None:
        """The files on disk; None if no folder is writable."""
        try:
            return _Files(self._function, self._stamp)
        except RuntimeError:
            return None

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Load a compiled kernel from disk; where there is none it will be compiled, which is announced."""
        if self.files is None:
            self._announce(UNCACHED)
            return None
        loaded = None
        with suppress(Exception):  # written by other versions, or unreadable
            rtsys.initialize(target)
            # Numba would first load all that it can compile, which takes a quarter of a second.
            loaded = self.files._load_overload(signature, target)
        if loaded is None:
            self._announce()
        return loaded

    def save_overload(self, signature: Any, data: Any) -> None:
        if self.files is not None:
            with suppress(OSError):  # the disk is full, say: the kernel is compiled again by the next process
                self.files.save_overload(signature, data)


class _Files(caching.FunctionCache):
    """Compiled kernels in files that are checked when they are read."""

    def __init__(self, function: Any, stamp: Callable[[str], str]) -> None:
        # Numba makes its cache from a class.
        self._impl_class = type("Stamped", (_CacheImpl,), {"stamp": staticmethod(stamp)})
        super().__init__(function)
        sources: Any = self._impl.locator.get_source_stamp()
        # Environments with different versions of Numba, or with checks of bounds, may share a folder: neither uses or
        # removes what is the other's.
        checks = ".checked" if numba.config.BOUNDSCHECK else ""
        name = f"{self._impl.filename_base}.numba-{numba.__version__}{checks}"
        self._cache_file: Any = CheckedFile(self._cache_path, name, sources)


class _Folder(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):
    """The folder that the environment variable names."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file, self._lineno = file, function.__code__.co_firstlineno
        self._cache_path = os.path.join(os.environ[VARIABLE], self.get_suitable_cache_subpath(file))

    def get_cache_path(self) -> str:
        return self._cache_path

    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        if not os.environ.get(VARIABLE):
            return None
        return super().from_function(function, file)


class _CacheImpl(caching.CompileResultCacheImpl):
    stamp: Callable[[str], str]

    def __init__(self, function: Any) -> None:
        locators = [_Folder, *caching.CompileResultCacheImpl._locator_classes]
        self._locator_classes = [_checked(locator, type(self).stamp) for locator in locators]
        super().__init__(function)


def _checked(locator: Any, stamp: Callable[[str], str]) -> type:
    """A locator whose files depend on the sources of kernels, and that takes no folder of somebody else."""

    def ensure_cache_path(self: Any) -> None:
        locator.ensure_cache_path(self)
        check_owner(self.get_cache_path())

    members = {"get_source_stamp": lambda self: stamp(self._py_file), "ensure_cache_path": ensure_cache_path}
    return type(locator.__name__, (locator,), members)


def check_owner(folder: str) -> None:
    """Raise a PermissionError if somebody else could have written to a folder; only POSIX systems tell."""
    if os.name != "posix":
        return
    found = os.stat(folder)
    if found.st_uid not in (os.getuid(), 0) or found.st_mode & stat.S_IWOTH:
        raise PermissionError(f"'{folder}' is not used as a cache because others may write to it.")


class CheckedFile(caching.IndexDataCacheFile):
    """An index and its files, each of which begins with a digest."""

    def _load_index(self) -> dict[Any, str]:
        try:
            return pickle.loads(self._read(self._index_path))
        except (OSError, ImportError, AttributeError):  # not there, damaged, or of arguments whose types have moved
            return {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, overloads)

    def _load_data(self, name: str) -> Any:
        return pickle.loads(self._read(self._data_path(name)))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, content: Any) -> None:
        data = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(self._digest(data))
            file.write(data)

    def _read(self, path: str) -> bytes:
        """The content of a file; raises an OSError, as for a file that is not there, if its digest is wrong."""
        with open(path, "rb") as file:
            digest, data = file.read(DIGEST), file.read()
        if self._digest(data) != digest:
            raise OSError(f"'{path}' is damaged, or of another version.")
        return data

    def _digest(self, data: bytes) -> bytes:
        return hashlib.sha256(f"{self._version}\n{self._source_stamp}\n".encode() + data).digest()
