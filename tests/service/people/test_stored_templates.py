"""Stored templates, learnt again from the samples that are still kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from sqlalchemy import delete

from keydyn.decisions import shipped_background
from keydyn.service.people.recognition import enrolment
from keydyn.service.people.rows import person_and_profile
from keydyn.service.people.stored_templates import fit
from keydyn.service.storage.tables import samples
from keydyn.service.wire.both_ways import Text
from tests.service.people.conftest import typed_by


@pytest.mark.parametrize(("kept", "is_learnt"), [(2, True), (1, False)])
def test_as_many_samples_as_are_needed_suffice_even_if_others_have_expired(context, write, kept, is_learnt):
    for session in range(3):
        enrolment.add_sample(context, write, "ada", typed_by(0, session))
    expired = delete(samples).where(samples.c.number > kept)
    context.database.write(lambda connection: connection.execute(expired))
    tenant = replace(write.tenant, settings=structs.replace(write.tenant.settings, samples_needed=2))

    def ada():
        with context.database.reading() as connection:
            return person_and_profile(connection, context, tenant, "ada", (Text(), "keyboard"))

    fit(context, tenant, *ada(), shipped_background())
    # Otherwise enrolment starts again.
    assert ada()[1].samples == (3 if is_learnt else 0)
