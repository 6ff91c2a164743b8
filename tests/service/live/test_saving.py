"""Saving of sessions: its times, and its end."""

from __future__ import annotations

import asyncio

import pytest

from keydyn.service.live.saving import Saver


async def turns(number):
    """Let all other tasks that can continue do so this many times."""
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.mark.parametrize("steps", range(6))
def test_saving_ends_whatever_becomes_urgent_meanwhile(steps):
    """The service could not stop if the end was lost because a session moved at that moment."""

    async def saving():
        saver = Saver(None, None, None, 60.0, None, None)
        task = asyncio.create_task(saver.run())
        await turns(1)
        saver._urgent.set()
        await turns(steps)
        task.cancel()
        await turns(10)
        return task.cancelled()

    assert asyncio.run(saving())
