"""Sessions watched from a browser: trust, locks, lost connections, a restarted service."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import select

from keydyn.decisions import Verifier
from keydyn.service.storage.tables import watch_sessions
from tests.client.flaky_proxy import ANSWER_LOST, LOST, PASS, flaky
from tests.ports import free_port
from tests.service.pages.conftest import TENANTS, database_in, served
from tests.service.pages.keyboard import Keyboard
from tests.service.running import Service
from tests.service.typists import enrol, frame_of, keystrokes_of
from tests.waiting import PATIENCE, wait_until

WATCH = """token => {
    window.stream = recorder.stream("/v1/users/ada/watch", {token});
    window.happened = [];
    for (const kind of ["trust", "lock", "unlock", "problem", "state", "close"]) {
        stream.on(kind, value => happened.push([kind, value]));
    }
}"""
# Times differ by the tenth of a millisecond of the browser's clock.
CLOSE = 0.02


def token_of(client, purpose="watch", **more):
    answer = client.post("/v1/users/ada/token", json={"purpose": purpose, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.fixture
def ada(service):
    """A client of the service's pages, for a new tenant in which ada is enrolled."""
    client = service.page(next(TENANTS))
    enrol(client, "ada", 0)
    return client


def expected_trust(session=6):
    """The trust that the recording gives without the service, keystroke by keystroke."""
    verifier = Verifier.shipped()
    verifier.enrol("ada", pd.concat([frame_of(0, n) for n in range(5)]))
    return verifier.watch("ada").update(frame_of(0, session)).trust


def happened(page, kind):
    return [value for name, value in page.evaluate("happened") if name == kind]


def judged(page):
    """Trust by number of the keystroke."""
    return {
        answer["first"] + n: trust
        for answer in happened(page, "trust")
        for n, trust in enumerate(answer["trust"])
    }


def wait_for(page, condition):
    """Wait until a condition holds; the page's policy does not let Playwright wait in the page."""
    until = time.monotonic() + PATIENCE
    while not page.evaluate(condition):
        assert time.monotonic() < until, f"{condition} does not become true: {page.evaluate('happened')}"
        page.wait_for_timeout(20)


def wait_for_answer(page, number):
    wait_for(page, f"happened.some(([kind, value]) => kind === 'trust' && value.last >= {number})")


def test_trust_after_every_keystroke(page, keyboard, ada):
    page.evaluate(WATCH, token_of(ada)["token"])
    rows = keystrokes_of(0, 6)
    began = keyboard.now
    keyboard.type(rows[:30])
    wait_for_answer(page, 20)
    keyboard.now = began
    keyboard.type(rows[30:])
    assert page.evaluate("stream.close()") == len(rows)
    trust = judged(page)
    assert list(trust) == list(range(1, 61))
    np.testing.assert_allclose(list(trust.values()), expected_trust(), atol=CLOSE)
    answers = happened(page, "trust")
    assert len(answers) > 1
    assert [name for answer in answers for name in answer["keynames"]] == [row["keyname"] for row in rows]
    assert page.evaluate("[stream.state, stream.durable, stream.locked]") == ["closed", 60, False]
    assert happened(page, "close") == [{"code": 1000, "reason": "closed", "durable": 60}]
    assert happened(page, "problem") == []


def test_few_keystrokes_do_not_wait_for_more_nor_for_a_key_that_is_held(page, keyboard, ada):
    page.evaluate(WATCH, token_of(ada)["token"])
    keyboard.tap("th")
    wait_for_answer(page, 2)
    keyboard.press("shift", 0)
    keyboard.press("e", 100)
    keyboard.release("e", 170)
    wait_for_answer(page, 4)
    keyboard.release("shift", 9000)
    assert page.evaluate("stream.close()") == 4
    # It was sent without its release, which the sample has.
    assert page.evaluate("recorder.sample().keystrokes[2].timerelease") is not None


def test_connections_that_are_lost_lose_nothing(open_page, service, ada):
    rng = np.random.default_rng(3)
    flows = [True]

    def fate():
        return PASS if flows[0] else str(rng.choice([PASS, LOST, ANSWER_LOST], p=[0.6, 0.2, 0.2]))

    with flaky(int(service.url.rpartition(":")[2]), fate) as proxy:
        page = open_page(url=proxy.url)
        keyboard = Keyboard(page)
        flows[0] = False
        page.evaluate(WATCH, token_of(ada)["token"])
        rows = keystrokes_of(0, 6)
        keyboard.type(rows)
        wait_for(page, "stream.durable > 0")
        flows[0] = True
        wait_for_answer(page, 60)
        assert page.evaluate("stream.close()") == 60
        assert happened(page, "state").count("open") > 1
        expected, trust = expected_trust(), judged(page)
        for number, value in trust.items():
            assert value == pytest.approx(expected[number - 1], abs=CLOSE)
        page.context.close()


def test_an_impostor_is_locked_until_somebody_unlocks(open_page, ada):
    token = token_of(ada)
    page = open_page()
    keyboard = Keyboard(page)
    page.evaluate(WATCH, token["token"])
    for session in range(12):
        keyboard.type(keystrokes_of(1, session))
        wait_for_answer(page, 60 * (session + 1))
        if happened(page, "lock"):
            break
    wait_for(page, "stream.locked")
    (lock,) = happened(page, "lock")
    assert lock["session"] == token["session"]
    assert max(judged(page)) == lock["at"]
    # To load the page again does not help.
    again = open_page()
    again.evaluate(WATCH, token["token"])
    wait_for(again, "stream.locked")
    assert happened(again, "lock") == [{"session": token["session"], "at": None}]
    unlock = "token => stream.unlock(token).then(() => 'done', error => error.status)"
    assert again.evaluate(unlock, token["token"]) == 403
    assert again.evaluate(unlock, token_of(ada, "unlock", session=token["session"])["token"]) == "done"
    assert not again.evaluate("stream.locked")
    assert len(happened(again, "unlock")) == 1


def test_a_page_that_is_loaded_again_goes_on_and_the_tab_before_it_gives_way(open_page, service, ada):
    made, rows = token_of(ada), keystrokes_of(0, 6)
    token, own = made["token"], watch_sessions.c.id == made["session"]

    def durable():
        with service.database.reading() as connection:
            return connection.execute(select(watch_sessions.c.sequence).where(own)).scalar()

    first = open_page()
    first.evaluate(WATCH, token)
    Keyboard(first).type(rows[:30])
    wait_for_answer(first, 30)
    # What is not durable yet is handed over only where that is quick.
    wait_until(lambda: durable() == 30)
    second = open_page()
    # It is typed in before it is connected.
    second.evaluate(f"({WATCH})(() => new Promise(resolve => {{ window.admit = resolve; }}))")
    Keyboard(second).type(rows[30:])
    second.evaluate("token => admit(token)", token)
    wait_for_answer(second, 60)
    assert list(judged(second)) == list(range(31, 61))
    assert second.evaluate("stream.close()") == 60
    wait_for(first, "stream.state === 'closed'")
    assert happened(first, "close")[0]["code"] == 4409


def test_tokens_are_asked_for_again_when_one_has_expired(page, keyboard, ada):
    page.expose_function("newToken", lambda session: token_of(ada, session=session)["token"])
    page.evaluate("window.asked = []")
    asking = "session => asked.push(session) === 1 ? 'kdt_x.y' : newToken(session)"
    page.evaluate(f"({WATCH})({asking})")
    keyboard.tap("the")
    wait_for_answer(page, 3)
    assert page.evaluate("asked") == [None, None]
    assert [problem["status"] for problem in happened(page, "problem")] == [401]
    # A token that is no function cannot be replaced.
    page.evaluate(WATCH, "kdt_x.y")
    wait_for(page, "stream.state === 'closed'")
    assert happened(page, "close")[0]["code"] == 4401


def test_a_stream_that_was_closed_while_it_waited_for_a_token_stays_closed(page, ada):
    page.evaluate(f"({WATCH})(() => new Promise((resolve, reject) => {{ window.refuse = reject; }}))")
    page.evaluate("stream.close()")
    page.evaluate("refuse(new Error('The service cannot be reached'))")
    assert page.evaluate("stream.state") == "closed"
    assert [kind for kind, _ in page.evaluate("happened")] == ["state", "close"]


@pytest.fixture
def database(tmp_path) -> str:
    """The address of a database for a service that is restarted."""
    return database_in(tmp_path)


@pytest.fixture
def restarted(database) -> Iterator[Service]:
    """A service that soon closes connections on which nothing is typed."""
    with served(database, idle_seconds=1) as found:
        yield found


def test_a_session_outlives_the_service(open_page, database):
    # The port is one that no other process is given while the service is gone.
    rows, port = keystrokes_of(0, 6), free_port()
    with served(database, port=port) as service:
        client = service.page()
        enrol(client, "ada", 0)
        page = open_page(url=service.url)
        keyboard = Keyboard(page)
        page.evaluate(WATCH, token_of(client)["token"])
        # In mid-word: keys are held down when the service goes.
        began = keyboard.now
        keyboard.type(rows[:30])
    wait_for(page, "['waiting', 'connecting'].includes(stream.state)")
    keyboard.now = began
    keyboard.type(rows[30:45])
    with served(database, port=port):
        keyboard.now = began
        keyboard.type(rows[45:])
        wait_for_answer(page, 60)
        assert page.evaluate("stream.close()") == 60
    trust, expected = judged(page), expected_trust()
    assert max(trust) == 60
    for number, value in trust.items():
        assert value == pytest.approx(expected[number - 1], abs=CLOSE)


def test_a_connection_that_was_closed_because_nothing_was_typed_is_opened_again(open_page, restarted):
    client = restarted.page()
    enrol(client, "ada", 0)
    page = open_page(url=restarted.url)
    keyboard = Keyboard(page)
    page.evaluate(WATCH, token_of(client)["token"])
    keyboard.tap("the")
    wait_for(page, "stream.state === 'idle'")
    keyboard.tap("end")
    wait_for_answer(page, 6)
    assert sorted(judged(page)) == [1, 2, 3, 4, 5, 6]
