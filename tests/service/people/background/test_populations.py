"""A tenant's own populations: learnt from its people with permission, replaced, and erased with notes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from msgspec import structs
from sqlalchemy import insert, select

from keydyn.datasets import make_typists
from keydyn.decisions import Verifier, shipped_background
from keydyn.decisions.calibration.trials import LEAST_PEOPLE
from keydyn.keystrokes import Samples, one_sample
from keydyn.service.accounts import find_tenant
from keydyn.service.jobs import queue
from keydyn.service.jobs.periodic import expire
from keydyn.service.people import registry
from keydyn.service.people.background import populations
from keydyn.service.people.background.backgrounds import find_background
from keydyn.service.people.background.own_people import TenantPlace
from keydyn.service.people.background.populations import PopulationKind
from keydyn.service.people.context import Write
from keydyn.service.people.recognition import enrolment
from keydyn.service.problems import Problem
from keydyn.service.storage.tables import own_places, profiles, tenants, users
from keydyn.service.storage.tables import populations as populations_table
from keydyn.service.wire.answers import PopulationAnswer
from keydyn.service.wire.both_ways import Moment, Text
from tests.service.people.conftest import logged, person_of, tenant_of, typed_by
from tests.service.running import KEYS
from tests.waiting import wait_until

N_PEOPLE, N_SAMPLES = 12, 6


@pytest.fixture(scope="module")
def typed():
    """Samples of a password, with positions in place of keys, by person."""
    return positions_of(make_typists(n_users=N_PEOPLE, n_samples=N_SAMPLES, text="fixed", random_state=3))


def positions_of(frame):
    people = []
    for _, person in frame.groupby("user", sort=False):
        samples = []
        for _, sample in person.groupby("session", sort=False):
            rows = zip(sample["timepress"].tolist(), sample["timerelease"].tolist(), strict=True)
            samples.append(
                [
                    {"keyname": str(n), "timepress": press, "timerelease": release}
                    for n, (press, release) in enumerate(rows, 1)
                ]
            )
        people.append(samples)
    return people


TEXT = {"kind": "positions", "name": "password"}
VOCABULARY = "positions:password"


def enrol_everybody(client, typed):
    for n, samples in enumerate(typed):
        client.post("/v1/users", json={"id": f"user-{n}"})
        for sample in samples[:5]:
            body = {"keystrokes": sample, "text": TEXT}
            assert client.post(f"/v1/users/user-{n}/samples", json=body).status_code == 201


def verify(client, name, sample):
    return client.post(f"/v1/users/{name}/verify", json={"keystrokes": sample, "text": TEXT})


def waited(condition):
    """Wait for work that is not part of a request."""
    wait_until(condition)


def of(service):
    """The context and the tenant behind the running service."""
    context = service.app.state.context
    with service.database.reading() as connection:
        tenant_id = connection.execute(select(tenants.c.id).where(tenants.c.name == "default")).scalar_one()
        return context, find_tenant(connection, KEYS, tenant_id)


def test_a_population_of_the_tenants_people_who_leave_it_when_they_are_erased(service, client, typed):
    enrol_everybody(client, typed)
    refused = client.post("/v1/populations", json={"text": TEXT})
    assert refused.json()["type"].endswith("not-allowed")
    assert verify(client, "user-0", typed[0][5]).json()["type"].endswith("no-population")
    client.put("/v1/settings", json={"learn_from_people": True})
    assert client.post("/v1/populations", json={"text": TEXT}).status_code == 202
    waited(lambda: client.get("/v1/populations").json()["populations"])
    before = client.get("/v1/populations").json()["populations"]
    assert [(one["vocabulary"], one["people"], one["learnt_here"]) for one in before] == [
        (VOCABULARY, N_PEOPLE, True)
    ]
    # Genuine samples speak for the claim more than those of the next person.
    mine, theirs = (
        [verify(client, f"user-{n}", typed[(n + k) % N_PEOPLE][5]) for n in range(N_PEOPLE)] for k in (0, 1)
    )
    better = [one.json()["llr"] > other.json()["llr"] for one, other in zip(mine, theirs, strict=True)]
    assert sum(better) >= N_PEOPLE - 1
    # Another tenant has nothing of it.
    assert service.client(service.key("another")).get("/v1/populations").json()["populations"] == []
    # Its people are no strangers to it: the calibration, which left each of them out, says how they fare.
    stated = client.get("/v1/error-rates", params={"positions": "password"}).json()
    assert (stated["population"], stated["people"]) == (before[0], N_PEOPLE)
    measured = client.post("/v1/error-rates/measure", json={"text": TEXT})
    assert (measured.status_code, measured.json()["type"]) == (409, "urn:keydyn:problem:learnt-from-them")

    cohort = members_of(service)
    exported = client.get("/v1/users/user-3/export").json()["populations"]
    assert exported == [{"device": "keyboard", "vocabulary": VOCABULARY, "in_cohort": True}]
    answer = client.delete("/v1/users/user-3").json()
    assert answer["population"] == "being learnt again without them"
    assert len(members_of(service)) == len(cohort) - 1
    assert set(members_of(service)) < set(cohort)

    def learnt_again():
        now = client.get("/v1/populations").json()["populations"]
        return now and now[0]["background"] != before[0]["background"]

    waited(learnt_again)
    assert client.get("/v1/populations").json()["populations"][0]["people"] == N_PEOPLE - 1
    # Everybody else was migrated, and the log says so.
    waited(lambda: "template.migrated" in str(client.get("/v1/users/user-0/export").json()["audit"]))
    assert verify(client, "user-0", typed[1][5]).status_code == 200
    # When too few are left, it is used no more, except for templates that rest on it.
    client.delete("/v1/users/user-0")
    client.delete("/v1/users/user-1")
    waited(lambda: client.get("/v1/populations").json()["populations"] == [])
    assert verify(client, "user-2", typed[2][5]).status_code == 200
    client.post("/v1/users", json={"id": "later"})
    assert verify(client, "later", typed[3][5]).json()["type"].endswith("no-population")


def test_a_replaced_population_leaves_templates_whose_samples_have_expired(service, client, typed):
    enrol_everybody(client, typed[:2])
    context, tenant = of(service)
    write, kind = Write(tenant, "operator"), PopulationKind("keyboard", VOCABULARY)
    install = partial(populations.install, context, write, kind)
    one, other = (learnt_elsewhere(typed, first) for first in (0, 2))
    install(background=one)
    assert verify(client, "user-0", typed[0][5]).status_code == 200
    waited(
        lambda: all(each["profiles"][0]["template_at"] for each in client.get("/v1/users").json()["users"])
    )
    # Of the second, new samples are kept.
    service.clock.now += 31 * 86_400_000
    expire(service.database, service.clock())
    assert verify(client, "user-0", typed[0][4]).status_code == 200
    client.post("/v1/users/user-1/reset")
    frame = make_typists(n_users=2, n_samples=5, text="fixed", random_state=77)
    for sample in positions_of(frame)[1]:
        body = {"keystrokes": sample, "text": TEXT}
        assert client.post("/v1/users/user-1/samples", json=body).status_code == 201
    install(background=other)
    service.idle()
    rest_on = [backgrounds_of(service, f"user-{n}") for n in range(2)]
    assert rest_on == [[one.sha256], [other.sha256]]
    assert [verify(client, f"user-{n}", typed[n][5]).status_code for n in range(2)] == [200, 200]
    populations.remove(context, write, kind)
    service.idle()
    assert verify(client, "user-1", typed[1][4]).status_code == 200
    # Both are kept until nobody's template rests on them.
    assert kept(service) == {one.sha256, other.sha256}
    client.post("/v1/users/user-0/reset")
    assert kept(service) == {other.sha256}
    client.delete("/v1/users/user-1")
    assert kept(service) == set()


def test_people_with_one_sample_each_are_too_few_to_learn_from(context, write):
    allowed = structs.replace(write.tenant.settings, learn_from_people=True, samples_needed=1)
    write = replace(write, tenant=replace(write.tenant, settings=allowed))
    for n in range(LEAST_PEOPLE):
        registry.create(context, write, f"user-{n}")
        enrolment.add_sample(context, write, f"user-{n}", typed_by(n % 4, n // 4))
    with pytest.raises(Problem) as caught:
        populations.learn(context, write, PopulationKind("keyboard", "keys"))
    assert (caught.value.status, caught.value.kind) == (409, "too-few-people")
    assert "there are 0" in caught.value.detail


def backgrounds_of(service, name):
    """The backgrounds with which the templates of a person were learnt."""
    query = select(profiles.c.background).join(users, users.c.id == profiles.c.user_id)
    with service.database.reading() as connection:
        return list(connection.execute(query.where(users.c.name == name)).scalars())


def kept(service):
    """The stored populations."""
    with service.database.reading() as connection:
        return set(connection.execute(select(populations_table.c.background)).scalars())


def members_of(service):
    context, tenant = of(service)
    with service.database.reading() as connection:
        text = Text("positions", "password")
        return find_background(connection, context, TenantPlace(tenant, text, "keyboard")).members


def learnt_elsewhere(typed, first):
    """A background learnt from people who are not the tenant's, without a cohort."""
    people = typed[first : first + 10]
    samples = [
        one_sample(
            [row["keyname"] for row in sample],
            [row["timepress"] for row in sample],
            [row["timerelease"] for row in sample],
            str(n),
            session,
        )
        for n, person in enumerate(people)
        for session, sample in enumerate(person)
    ]
    return Verifier.learn(Samples.joined(samples)).background.with_cohort({})


def test_a_population_that_is_installed_or_removed_is_noted_and_all_templates_are_learnt_again(
    context, write
):
    background, phone = shipped_background(), PopulationKind("phone", "keys")
    other = Write(tenant_of(context, "another"), "operator")

    def place(connection):
        for tenant in (write.tenant, other.tenant):
            row = {"tenant_id": tenant.id, "device": "phone", "text": "free", "version": 3}
            numbers = {"cohort": 1, "people": 1, "comparisons": 1, "shift": 0.0, "unsure": 0.0}
            connection.execute(insert(own_places).values(**row, background="some", **numbers))

    def listed(tenant):
        with context.database.reading() as connection:
            return populations.list_populations(connection, tenant)

    def versions():
        with context.database.reading() as connection:
            rows = connection.execute(select(own_places)).all()
        return {row.tenant_id: (row.version, row.background) for row in rows}

    context.database.write(place)
    populations.install(context, other, phone, background)
    done = populations.install(context, write, phone, background)
    made = Moment.at(context.clock())
    assert done == PopulationAnswer("phone", "keys", background.sha256, made, learnt_here=False, people=0)
    assert listed(write.tenant) == [done]
    # The comparisons so far were made beside another population.
    assert versions() == {write.tenant.id: (4, ""), other.tenant.id: (4, "")}
    populations.install(context, write, PopulationKind("keyboard", "keys"), background)
    populations.remove(context, write, phone)
    assert [one.device for one in listed(write.tenant)] == ["keyboard"]
    assert len(listed(other.tenant)) == 1
    told = {"device": "phone", "vocabulary": "keys"}
    noted = [(one["action"], one["details"]) for one in logged(context, write)][-3:]
    assert noted == [
        ("population.replaced", told),
        ("population.replaced", told | {"device": "keyboard"}),
        ("population.removed", told),
    ]
    jobs = []
    while lease := context.database.write(lambda c: queue.take(c, "migrate", context.clock())):
        jobs.append((lease.tenant_id, lease.opened(KEYS).payload["device"]))
    own = write.tenant.id
    assert jobs == [(other.tenant.id, "phone"), (own, "phone"), (own, "keyboard"), (own, "phone")]


def test_a_population_of_someone_who_was_erased_meanwhile_is_not_used(context, write):
    ada = person_of(context, write)
    registry.erase(context, write, "ada")
    with pytest.raises(Problem) as caught:
        populations._replace(context, write, PopulationKind("phone", "keys"), shipped_background(), [ada])
    assert (caught.value.status, caught.value.kind) == (409, "busy")
    with context.database.reading() as connection:
        assert populations.list_populations(connection, write.tenant) == []


def test_a_population_that_cannot_be_learnt_again_is_removed(context, write):
    kind = PopulationKind("keyboard", "keys")
    populations.install(context, write, kind, shipped_background())
    populations.learn_again(context, write, kind)
    with context.database.reading() as connection:
        assert populations.list_populations(connection, write.tenant) == []
