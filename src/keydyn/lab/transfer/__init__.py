"""Study: everything is learnt and calibrated in one place, and tested in another."""
