"""Optional packages: imported when first needed, missed with the name of the extra that brings them."""

import importlib
from types import ModuleType

from vcpulab.errors import MissingExtraError


def require(module: str, extra: str, package: str = "vcpulab") -> ModuleType:
    """Imports `module`, which the extra `extra` of `package` installs.

    Examples:
        >>> require("not_a_module", "report")
        Traceback (most recent call last):
        ...
        vcpulab.errors.MissingExtraError: `not_a_module` is not installed
          hint: pip install 'vcpulab[report]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        message = f"`{module}` is not installed\n  hint: pip install '{package}[{extra}]'"
        raise MissingExtraError(message, name=module) from error
