"""Everything learnt and calibrated in one place, tested in another."""
