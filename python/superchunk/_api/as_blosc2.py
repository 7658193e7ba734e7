"""superchunk under the name `blosc2`, for programs that import that name and cannot be changed.

`install_as_blosc2` puts modules of aliases into `sys.modules`; objects are superchunk's own. Names that superchunk
lacks are missing in the alias, too. A program then fails where it asks for the name, and not later.

Source: docs/migrating.md, "Programs that cannot be changed".
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Self

import superchunk
from superchunk._version import COMPATIBLE_VERSION

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["InstalledAlias", "install_as_blosc2"]

_NAME: Final = "blosc2"
_SUBMODULES: Final = {
    "core": "superchunk.core",
    "exceptions": "superchunk.exceptions",
    "ndarray": "superchunk.ndarray",
    "schunk": "superchunk.schunk",
    "storage": "superchunk.params",
    "version": "superchunk._version",
}
"""Modules of python-blosc2 whose public names superchunk has, and where these are."""


class _Alias(ModuleType):
    """A module whose attributes are those of another one."""

    def __init__(self, name: str, target: ModuleType) -> None:
        super().__init__(name, target.__doc__)
        self.__dict__["_target"] = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_target"], name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.__dict__["_target"])})


class InstalledAlias:
    """What `install_as_blosc2` did: `uninstall`, or the end of a ``with`` block, undoes it.

    An installation inside another one changes nothing, and undoes nothing.
    """

    __slots__ = ("_before", "_installed")

    def __init__(self) -> None:
        self._before: dict[str, ModuleType] = {}
        self._installed: dict[str, ModuleType] = {}
        if not isinstance(sys.modules.get(_NAME), _Alias):
            self._install()

    def _install(self) -> None:
        self._before = {name: module for name, module in sys.modules.items() if _is_blosc2(name)}
        package = _Alias(_NAME, superchunk)
        package.__path__ = []
        package.__version__ = COMPATIBLE_VERSION  # type: ignore[attr-defined]
        self._installed = {_NAME: package}
        for name, target in _SUBMODULES.items():
            submodule = _Alias(f"{_NAME}.{name}", import_module(target))
            self._installed[f"{_NAME}.{name}"] = submodule
            setattr(package, name, submodule)
        for name in self._before:
            del sys.modules[name]
        sys.modules.update(self._installed)

    def uninstall(self) -> None:
        """Give the name `blosc2` back to what had it before; calling it again does nothing.

        Modules that imported superchunk under that name keep what they imported.
        """
        if self._installed and sys.modules.get(_NAME) is self._installed[_NAME]:
            for name in [name for name in sys.modules if _is_blosc2(name)]:
                del sys.modules[name]
            sys.modules.update(self._before)
        self._installed.clear()
        self._before.clear()

    def __enter__(self) -> Self:
        """Return this object."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Undo the installation."""
        self.uninstall()


def install_as_blosc2() -> InstalledAlias:
    """Let ``import blosc2`` give superchunk, in this process, for all modules that are imported from now on.

    Submodules that both packages have are there too (``blosc2.core``, ``.exceptions``, ``.ndarray``, ``.schunk``,
    ``.storage``, ``.version``). ``blosc2.__version__`` is the version of python-blosc2 whose storage API superchunk
    is checked against. A module that imported python-blosc2 before keeps it.

    Returns
    -------
    InstalledAlias
        Its `uninstall` undoes the installation, and so does the end of a ``with`` block.

    Examples
    --------
    >>> import superchunk
    >>> with superchunk.install_as_blosc2():
    ...     import blosc2
    ...
    ...     blosc2.SChunk is superchunk.SChunk
    True

    """
    return InstalledAlias()


def _is_blosc2(name: str) -> bool:
    return name == _NAME or name.startswith(f"{_NAME}.")
