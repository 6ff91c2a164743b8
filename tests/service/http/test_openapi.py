"""Every route against the OpenAPI document, which describes all that is accepted and answered."""

from __future__ import annotations

from itertools import count

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.service.http.test_access import ROUTES
from tests.service.http.test_document import DESCRIBED
from tests.service.running import http_get, running
from tests.service.typists import enrol, keystrokes_of
from tests.waiting import PATIENCE

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
# Of schemathesis itself, about the strategies that it makes.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")
PLACES = [place for place in ROUTES if place[0] != "WS" and place[1].startswith(DESCRIBED)]
NAMES = (f"described-{n}" for n in count())
HOUR = 3_600_000
PROBLEM = {"type", "title", "status", "detail", "instance"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service for all routes, each of which has a tenant of its own."""
    url = f"sqlite:///{tmp_path_factory.mktemp('described') / 'service.db'}"
    with running(url) as found:
        yield found


@pytest.fixture(scope="module")
def document(service):
    return http_get(f"{service.url}/openapi.json").json()


def judged(service, document, place, examples):
    """Send requests that fit the description and others, about an enrolled person and about others."""
    method, path = place
    operation = schemathesis.openapi.from_dict(document)[path][method]
    client = service.client(service.key(next(NAMES)))
    enrol(client, "ada", 0)
    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    cases = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in modes))

    @given(case=cases, known=st.booleans())
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def send(case, known):
        if known and "id" in (case.path_parameters or {}):
            case.path_parameters["id"] = "ada"
            # The person who was erased is there again, and has no attempts to wait for.
            client.post("/v1/users", json={"id": "ada"})
            service.clock.now += HOUR
        response = case.call(base_url=service.url, headers=dict(client.headers), timeout=PATIENCE)
        body = case.meta.components.get(ParameterLocation.BODY)
        # Headers are ours, an unknown query is ignored, and what is too large is refused before it is read.
        wrong = body is not None and body.mode is GenerationMode.NEGATIVE and response.status_code != 413
        case.validate_response(response, checks=[*CHECKS, *([negative_data_rejection] if wrong else [])])
        assert response.headers["x-request-id"]
        if response.status_code >= 400:
            assert response.headers["content-type"] == ["application/problem+json"]
            assert set(response.json()) >= PROBLEM
            assert response.json()["status"] == response.status_code

    send()


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_routes_are_as_described(service, document, place):
    judged(service, document, place, 10)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES, ids=" ".join)
def test_routes_are_as_described_at_length(service, document, place):
    judged(service, document, place, 1000)


def test_typing_of_any_kind_is_answered(service):
    """Samples that are near those of people reach further than random ones: nothing of them is an error."""
    client = service.client(service.key(next(NAMES)))
    enrol(client, "ada", 0)
    rows = keystrokes_of(0, 9)
    time = st.one_of(
        st.none(), st.floats(-1e15, 1e15), st.integers(-5, 5), st.sampled_from([0.0, -0.0, 1e15])
    )
    changes = st.lists(
        st.tuples(
            st.integers(0, len(rows) - 1),
            st.one_of(
                st.fixed_dictionaries({"timepress": time}),
                st.fixed_dictionaries({"timerelease": time}),
                st.fixed_dictionaries({"keyname": st.text(min_size=1, max_size=64)}),
            ),
        ),
        max_size=8,
    )
    routes = ("/v1/users/ada/samples", "/v1/users/ada/verify", "/v1/identify")

    @given(changes=changes, kept=st.integers(1, len(rows)), route=st.sampled_from(routes))
    @settings(max_examples=60, deadline=None, database=None)
    def send(changes, kept, route):
        changed = [dict(row) for row in rows]
        for n, change in changes:
            changed[n] |= change
        service.clock.now += HOUR
        response = client.post(route, json={"keystrokes": changed[:kept]})
        assert response.status_code in (200, 201, 400, 403, 409, 422, 429), response.text

    send()
