"""Fuzzers: what comes from outside, changed at random, is read as it should be or refused with a reason."""
