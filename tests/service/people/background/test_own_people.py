"""A tenant's own people: the service agrees with the library, and erasure leaves no trace of a person."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from sqlalchemy import insert, select, update

from keydyn.datasets import make_typists
from keydyn.decisions import Verifier, shipped_background
from keydyn.service.accounts import find_tenant, tenant_named
from keydyn.service.jobs import queue
from keydyn.service.jobs.queue import Job
from keydyn.service.people.background import own_people
from keydyn.service.people.background.backgrounds import find_background
from keydyn.service.people.background.own_people import TenantPlace, comparisons_among
from keydyn.service.people.context import Context
from keydyn.service.people.job_handlers import handlers
from keydyn.service.people.rows import NOTHING, Stale, find_person, new_profile
from keydyn.service.storage.tables import comparisons, own_places, profiles, tenants, users
from keydyn.service.wire.both_ways import Text
from tests.service.conftest import opened
from tests.service.http.test_watching import address, said
from tests.service.people.conftest import person_of
from tests.service.running import KEYS, connect, running
from tests.service.storage.rows import add_user

N_PEOPLE, N_SAMPLES = 5, 6
TYPED = make_typists(n_users=N_PEOPLE, n_samples=N_SAMPLES, text="free", n_keys=60, random_state=11)
NAMES = [f"user-{n}" for n in range(N_PEOPLE)]
COLUMNS = ("keyname", "timepress", "timerelease")


def frame_of(user, session):
    return TYPED[(TYPED["user"] == user) & (TYPED["session"] == session)]


def rows_of(user, session):
    columns = (frame_of(user, session)[name].tolist() for name in COLUMNS)
    return [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]


def enrol(service, client, *people):
    """Enrol people one after the other, each with five samples."""
    for n in people:
        service.clock.now += 1000
        assert client.post("/v1/users", json={"id": NAMES[n]}).status_code == 201
        for session in range(5):
            sent = client.post(f"/v1/users/{NAMES[n]}/samples", json={"keystrokes": rows_of(n, session)})
            assert sent.status_code == 201, sent.text
        service.idle()


def in_the_library(*people):
    verifier = Verifier.shipped()
    for n in people:
        verifier.enrol(NAMES[n], TYPED[(TYPED["user"] == n) & (TYPED["session"] < 5)])
    return verifier


def tenant_of(service, name="default"):
    with service.database.reading() as connection:
        tenant_id = connection.execute(select(tenants.c.id).where(tenants.c.name == name)).scalar_one()
        return find_tenant(connection, KEYS, tenant_id)


def background_of(service, context=None):
    """The background in use, with the names of the people in its cohort."""
    with service.database.reading() as connection:
        place = TenantPlace(tenant_of(service), Text(), "keyboard")
        found = find_background(connection, context or service.app.state.context, place)
        names = dict(map(tuple, connection.execute(select(users.c.id, users.c.name))))
    return found, [names[one] for one in found.members if one]


def place_row(service):
    with service.database.reading() as connection:
        return connection.execute(select(own_places)).one()


def pairs(service):
    """The names of people whose samples were compared with the templates of others, in pairs."""
    with service.database.reading() as connection:
        named = select(profiles.c.id, users.c.name).join(users, users.c.id == profiles.c.user_id)
        owner = dict(map(tuple, connection.execute(named)))
        rows = connection.execute(select(comparisons.c.profile_id, comparisons.c.claimed_id)).all()
    return {(owner[one], owner[other]) for one, other in rows}


def agrees(service, verifier):
    """Check that the service and the library agree about the tenant's own people."""
    row, place = place_row(service), verifier.place
    assert (row.people, row.comparisons) == (place.people, place.comparisons)
    # Templates are stored with the digits of single precision.
    assert (row.shift, row.unsure) == pytest.approx((place.shift, place.unsure), rel=1e-3, abs=1e-4)
    found, members = background_of(service)
    assert members == verifier.users
    assert found.calibrations.unsure == row.unsure < shipped_background().calibrations.unsure


def verified(client, n, session=5):
    return client.post(f"/v1/users/{NAMES[n]}/verify", json={"keystrokes": rows_of(n, session)}).json()


def test_own_people_count_as_in_the_library(service):
    client = service.page()
    enrol(service, client, 0, 1)
    assert background_of(service)[0] is shipped_background()
    assert client.get("/v1/error-rates").json()["own"] is None
    learnt_at = [one["profiles"][0]["template_at"] for one in client.get("/v1/users").json()["users"]]
    enrol(service, client, 2, 3, 4)
    verifier = in_the_library(*range(5))
    agrees(service, verifier)
    assert pairs(service) == {(NAMES[one], name) for one in range(2, 5) for name in NAMES[:one]}
    stated, rate = client.get("/v1/error-rates").json(), verifier.own_rate()
    own = stated["own"]
    assert (stated["population"], own["people"], own["comparisons"]) == (None, 5, verifier.place.comparisons)
    assert (own["standard"]["value"], own["standard"]["trials"]) == (rate.value, rate.trials)
    assert own["low"]["value"] == verifier.own_rate(0.05).value
    identified = client.post("/v1/identify", json={"keystrokes": rows_of(1, 5)}).json()
    expected = verifier.identify(frame_of(1, 5))
    assert identified["candidates"][0]["user"] == expected.user == NAMES[1]
    assert identified["nobody_probability"] == pytest.approx(expected.nobody_probability, rel=1e-2)
    for n in range(5):
        decision = verifier.verify(NAMES[n], frame_of(n, 5))
        answer = verified(client, n)
        assert answer["answer"] == decision.answer
        assert answer["llr"] == pytest.approx(decision.llr, rel=1e-3, abs=1e-3)
    # What scores mean has moved, and nobody's template was learnt again for it.
    again = [one["profiles"][0]["template_at"] for one in client.get("/v1/users").json()["users"]][:2]
    assert again == learnt_at
    assert "template.migrated" not in str(client.get(f"/v1/users/{NAMES[0]}/export").json())


def test_who_is_erased_or_reset_is_out_at_once(service, client):
    enrol(service, client, 0, 1, 2, 3, 4)
    verifier = in_the_library(*range(5))
    # Another process, which has seen all of them.
    other = Context(service.database, KEYS, service.clock)
    assert background_of(service, other)[1] == NAMES
    assert client.delete(f"/v1/users/{NAMES[1]}").status_code == 200
    for context in (None, other):
        assert background_of(service, context)[1] == [NAMES[0], *NAMES[2:]]
    service.idle()
    verifier.remove(NAMES[1])
    agrees(service, verifier)
    assert not any(NAMES[1] in pair for pair in pairs(service))
    assert client.post(f"/v1/users/{NAMES[3]}/reset").status_code == 200
    assert background_of(service, other)[1] == [NAMES[0], NAMES[2], NAMES[4]]
    service.idle()
    verifier.remove(NAMES[3])
    agrees(service, verifier)
    assert not any(NAMES[3] in pair for pair in pairs(service))
    # Two are too few.
    client.delete(f"/v1/users/{NAMES[0]}")
    assert background_of(service, other)[0] is shipped_background()
    service.idle()
    assert client.get("/v1/error-rates").json()["own"] is None


def test_no_more_are_compared_than_a_cohort_takes(service, client, monkeypatch):
    monkeypatch.setattr(own_people, "LARGEST_COHORT", 3)
    enrol(service, client, 0, 1, 2)
    agrees(service, in_the_library(0, 1, 2))
    enrol(service, client, 3)
    agrees(service, in_the_library(0, 1, 2))
    assert not any(NAMES[3] in pair for pair in pairs(service))
    # The next one takes the place of a person who leaves.
    client.delete(f"/v1/users/{NAMES[0]}")
    assert background_of(service)[1] == NAMES[1:4]


def test_no_template_is_read_for_people_who_come_after_a_full_cohort(service, client, monkeypatch):
    monkeypatch.setattr(own_people, "LARGEST_COHORT", 3)
    enrol(service, client, 0, 1, 2)
    # As if the cohort had grown too little since it was last learnt from.
    service.database.write(lambda c: c.execute(update(own_places).values(cohort=2)))
    place, version = TenantPlace(tenant_of(service), Text(), "keyboard"), place_row(service).version
    before = pairs(service)
    # Each version of the cohort is read once: by the last job above, or here.
    background_of(service)
    monkeypatch.setattr(own_people, "templates_of", None)
    enrol(service, client, 3)
    assert (pairs(service), place_row(service).version) == (before, version)
    with service.database.reading() as connection:
        context = service.app.state.context
        people = [find_person(connection, context, place.tenant, name) for name in NAMES[:4]]
        late = [own_people._is_late(connection, place, one, shipped_background()) for one in people]
    assert late == [False, False, False, True]


def test_a_tenant_may_switch_it_off(service, client):
    enrol(service, client, 0, 1, 2)
    assert len(background_of(service)[1]) == 3
    exported = client.get(f"/v1/users/{NAMES[2]}/export").json()["profiles"][0]["comparisons"]
    assert [len(one["scores"]) for one in exported] == [5, 5]
    settings = client.get("/v1/settings").json()
    assert settings["compare_people"] is True
    client.put("/v1/settings", json=settings | {"compare_people": False})
    assert background_of(service)[0] is shipped_background()
    assert pairs(service) == set()
    enrol(service, client, 3)
    assert pairs(service) == set()
    assert client.get("/v1/error-rates").json()["own"] is None
    # Others are compared from then on, those who are there included.
    client.put("/v1/settings", json=settings)
    assert background_of(service)[0] is shipped_background()
    enrol(service, client, 4)
    assert pairs(service) == {(NAMES[4], name) for name in NAMES[:4]}
    assert background_of(service)[1] == NAMES


def test_comparisons_of_other_tenants_stay_when_one_wants_them_no_more(context):
    people = {"shop": ("ada", "bob"), "bank": ("cy", "di")}

    def fill(connection):
        for tenant, names in people.items():
            tenant_id = tenant_named(connection, KEYS, tenant, 0)
            for name in names:
                add_user(connection, name, tenant_id)
                values = {"id": name, "user_id": name, "created_at": 0, "version": 1, **NOTHING}
                connection.execute(insert(profiles).values(text="free", device="keyboard", **values))
            row = dict(zip(("profile_id", "claimed_id"), names, strict=True))
            connection.execute(insert(comparisons).values(background="", contents=b"", **row))
        return find_tenant(connection, KEYS, tenant_named(connection, KEYS, "shop", 0))

    shop = context.database.write(fill)
    context.database.write(lambda connection: own_people.forget_everyone(connection, shop))
    with context.database.reading() as connection:
        assert connection.execute(select(comparisons.c.profile_id)).scalars().all() == ["cy"]


def test_nothing_is_kept_of_comparisons_that_are_switched_off_meanwhile(service, client, monkeypatch):
    enrol(service, client, 0, 1)
    compared = own_people.compared

    def meanwhile(*arguments):
        client.put("/v1/settings", json={"compare_people": False})
        return compared(*arguments)

    monkeypatch.setattr(own_people, "compared", meanwhile)
    enrol(service, client, 2)
    assert pairs(service) == set()


def test_samples_that_are_not_kept_are_compared_before_they_go(service, client):
    client.put("/v1/settings", json={"retention_days": 0})
    enrol(service, client, 0, 1, 2)
    agrees(service, in_the_library(0, 1, 2))
    assert client.get(f"/v1/users/{NAMES[2]}/export").json()["profiles"][0]["samples"] == []


def test_the_background_is_found_with_one_query(service, client):
    enrol(service, client, 0, 1, 2)
    found, _ = background_of(service)
    context, tenant = service.app.state.context, tenant_of(service)
    with service.database.reading() as connection, statements(connection) as seen:
        assert find_background(connection, context, TenantPlace(tenant, Text(), "keyboard")) is found
    assert len([one for one in seen if one.startswith("SELECT")]) == 1


@contextmanager
def statements(connection):
    seen = []
    driver = connection.connection.dbapi_connection
    driver.set_trace_callback(seen.append)
    yield seen
    driver.set_trace_callback(None)


def test_texts_and_tenants_are_apart(service, client):
    enrol(service, client, 0, 1, 2)
    context, other = service.app.state.context, service.client(service.key("another"))
    other.get("/v1/users")
    with service.database.reading() as connection:
        for tenant, text in (("another", Text()), ("default", Text("fixed", "motto"))):
            place = TenantPlace(tenant_of(service, tenant), text, "keyboard")
            found = find_background(connection, context, place)
            assert found is shipped_background()


def test_who_leaves_while_others_are_compared_with_them_leaves_nothing(service, client, monkeypatch):
    enrol(service, client, 0, 1, 2)
    compared = own_people.compared
    gone = iter([f"/v1/users/{NAMES[0]}/reset"])

    def meanwhile(*arguments):
        path = next(gone, None)
        if path:
            client.post(path)
        return compared(*arguments)

    monkeypatch.setattr(own_people, "compared", meanwhile)
    enrol(service, client, 3)
    assert (NAMES[3], NAMES[0]) not in pairs(service)
    assert (NAMES[3], NAMES[1]) in pairs(service)
    assert NAMES[0] not in background_of(service)[1]


@pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
def test_a_job_done_twice_does_no_harm(database_url):
    for database in opened(database_url):
        database.close()
    with running(database_url) as service:
        client = service.client()
        enrol(service, client, 0, 1, 2)
        before, there = place_row(service), pairs(service)
        assert there == {(NAMES[2], NAMES[0]), (NAMES[2], NAMES[1])}
        context, tenant = service.app.state.context, tenant_of(service)
        with service.database.reading() as connection:
            profile = connection.execute(
                select(profiles.c.id).join(users).where(users.c.name == NAMES[2])
            ).scalar_one()
        job = Job(tenant.id, {"profile": profile}, tenant.key, 1)
        handlers(context)["fit"](job)
        service.idle()
        assert (place_row(service), pairs(service)) == (before, there)
        client.delete(f"/v1/users/{NAMES[0]}")
        service.idle()
        after = place_row(service)
        assert (after.cohort, after.people, after.comparisons) == (2, 2, 5)
        assert after.version > before.version
        assert pairs(service) == {(NAMES[2], NAMES[1])}


def test_a_watched_session_starts_again_when_the_cohort_has_grown(service, client):
    enrol(service, client, 0, 1)
    name = NAMES[0]
    keys = [[row["keyname"], row["timepress"], row["timerelease"]] for row in rows_of(0, 5)]
    headers = {"authorization": client.headers["authorization"]}
    with connect(address(service, name), additional_headers=headers) as socket:
        welcome = said(socket, type="hello")
        said(socket, type="keys", first=1, keys=keys[:30])
        # While it is open it goes on as it was.
        enrol(service, client, 2)
        on = said(socket, type="keys", first=31, keys=keys[30:40])
        assert (on["type"], on["last"]) == ("trust", 40)
    with connect(address(service, name), additional_headers=headers) as socket:
        again = said(socket, type="hello", session=welcome["session"])
        assert (again["type"], again["session"]) == ("welcome", welcome["session"])
        durable = again["durable"]
        rest = said(socket, type="keys", first=durable + 1, keys=keys[durable:])
    verifier = in_the_library(0, 1, 2)
    expected = verifier.watch(name).update(frame_of(0, 5).iloc[durable:])
    assert rest["trust"] == pytest.approx(expected.trust.tolist(), abs=1e-3)


def test_comparisons_with_a_population_that_is_no_longer_used_do_not_count(service, client):
    enrol(service, client, 0, 1, 2)
    context, place = service.app.state.context, TenantPlace(tenant_of(service), Text(), "keyboard")
    shipped = shipped_background()

    def among():
        with service.database.reading() as connection:
            people = own_people.own_people(connection, context, place, shipped)
            return sum(map(len, comparisons_among(connection, people, shipped).values()))

    assert among() == 10
    service.database.write(lambda c: c.execute(update(comparisons).values(background="0" * 64)))
    assert among() == 0
    service.database.write(
        lambda c: c.execute(update(own_places).values(background="0" * 64, version=own_places.c.version + 1))
    )
    assert background_of(service)[0] is shipped


def place_of(write):
    return TenantPlace(write.tenant, Text(), "keyboard")


@pytest.mark.parametrize(
    ("cohort", "people", "anew", "is_learnt"),
    [(100, 105, False, True), (100, 104, False, False), (100, 90, True, True), (0, 0, False, True)],
)
def test_an_adjustment_is_learnt_when_there_are_enough_more_people(
    context, write, monkeypatch, cohort, people, anew, is_learnt
):
    background = shipped_background()
    monkeypatch.setattr(own_people, "own_people", lambda *_: dict.fromkeys(range(people)))
    monkeypatch.setattr(own_people, "comparisons_among", lambda *_: {})
    if cohort:
        own_people_row(context, write, background=background.sha256, cohort=cohort, version=3)
    own_people.learn_place(context, place_of(write), background, anew)
    with context.database.reading() as connection:
        row = connection.execute(select(own_places)).one()
    if is_learnt:
        assert (row.cohort, row.version, row.background) == (people, 4 if cohort else 1, background.sha256)
    else:
        assert (row.cohort, row.version) == (cohort, 3)


def own_people_row(context, write, device="keyboard", **values):
    row = {
        "tenant_id": write.tenant.id,
        "device": device,
        "text": "free",
        "version": 1,
        "background": "other",
    }
    numbers = {"cohort": 9, "people": 9, "comparisons": 9, "shift": 1.0, "unsure": 1.0}
    context.database.write(lambda c: c.execute(insert(own_places).values(row | numbers | values)))


@pytest.mark.parametrize("is_there", [True, False])
def test_an_adjustment_that_another_one_overtakes_is_not_kept(context, write, monkeypatch, is_there):
    if is_there:
        own_people_row(context, write)

    def meanwhile(*_):
        if is_there:
            change = update(own_places).values(version=2)
            context.database.write(lambda connection: connection.execute(change))
        else:
            own_people_row(context, write)
        return {}

    monkeypatch.setattr(own_people, "comparisons_among", meanwhile)
    with pytest.raises(Stale):
        own_people.learn_place(context, place_of(write), shipped_background(), anew=True)
    with context.database.reading() as connection:
        assert connection.execute(select(own_places.c.cohort)).scalar_one() == 9


def test_an_adjustment_is_learnt_anew_when_a_compared_person_leaves(context, write):
    """Either typed, or claimed to be; others' comparisons stay."""
    for device in ("keyboard", "phone"):
        own_people_row(context, write, device)

    def fill(connection):
        ada = person_of(context, write)
        texts = [Text(), *(Text("fixed", f"text-{n}") for n in range(3))]
        some = [new_profile(connection, ada, text, "keyboard", 0) for text in texts]
        for one, other in ((0, 1), (2, 0), (1, 2), (2, 3)):
            ids = {"profile_id": some[one].id, "claimed_id": some[other].id}
            connection.execute(insert(comparisons).values(**ids, background="", contents=b""))
        return some

    some = context.database.write(fill)
    for profile, jobs in ((some[0], 1), (some[0], 0), (some[3], 1)):
        context.database.write(
            lambda c, one=profile: own_people.forget(c, write.tenant, one, context.clock())
        )
        lease = context.database.write(lambda c: queue.take(c, "own-people", context.clock()))
        assert (lease is not None) is bool(jobs)
        if lease is not None:
            told = {"text": str(profile.text), "device": "keyboard", "anew": True}
            assert lease.opened(KEYS).payload == told
    with context.database.reading() as connection:
        rows = connection.execute(select(own_places.c.device, own_places.c.version)).all()
        (left,) = connection.execute(select(comparisons)).all()
    # A person leaves the cohort, compared or not.
    assert dict(map(tuple, rows)) == {"keyboard": 3, "phone": 1}
    assert (left.profile_id, left.claimed_id) == (some[1].id, some[2].id)
