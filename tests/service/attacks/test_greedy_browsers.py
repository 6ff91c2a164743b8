"""A browser with too many requests uses up its own share, not that of the key that made its token."""

from __future__ import annotations

from tests.service.typists import enrol

# A key may send about a hundred requests; a token ten. So few are added meanwhile that none is, however slow
# the machine.
SETTINGS = {"requests_per_second": 50}


def test_a_token_cannot_use_up_the_rate_of_its_key(attacked, monkeypatch):
    monkeypatch.setattr(attacked.app.state.rates, "_clock", lambda: 0.0)
    client = attacked.client()
    enrol(client, "ada", 0)
    asked = {"purpose": "verify"}
    tokens = [client.post("/v1/users/ada/token", json=asked).json()["token"] for _ in range(2)]
    first, second = (attacked.client(token) for token in tokens)
    answers = [first.post("/v1/users/ada/verify", json={}).status_code for _ in range(60)]
    assert answers == [422] * 10 + [429] * 50
    assert second.post("/v1/users/ada/verify", json={}).status_code == 422
    assert client.get("/v1/users/ada").status_code == 200


def test_all_tokens_of_a_key_together_leave_it_its_own_rate(attacked, monkeypatch):
    monkeypatch.setattr(attacked.app.state.rates, "_clock", lambda: 0.0)
    client = attacked.client(attacked.key("shop"))
    client.post("/v1/users", json={"id": "ada"})
    asked = {"purpose": "enrol"}
    tokens = [client.post("/v1/users/ada/token", json=asked).json()["token"] for _ in range(11)]
    answers = [
        attacked.client(token).post("/v1/users/ada/samples", json={}).status_code
        for token in tokens
        for _ in range(10)
    ]
    assert answers == [422] * 100 + [429] * 10
    assert client.get("/v1/users/ada").status_code == 200
