"""Messages of the service's commands if the service cannot run."""

from __future__ import annotations

import pytest

from keydyn.commands.service.service_options import needs_service
from keydyn.exit_codes import UsageError


@pytest.mark.parametrize(
    ("module", "message"),
    [
        ("fastapi", r"pip install 'keydyn\[service\]' \(fastapi is not installed\)"),
        ("fcntl", "does not run on Windows"),
    ],
)
def test_a_missing_module_is_explained(module: str, message: str) -> None:
    with pytest.raises(UsageError, match=message), needs_service():
        raise ModuleNotFoundError(name=module)


def test_a_missing_module_of_our_own_is_a_fault() -> None:
    with pytest.raises(ModuleNotFoundError), needs_service():
        raise ModuleNotFoundError(name="keydyn.service.absent")
