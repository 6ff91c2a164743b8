"""The verification service: enrol, verify, identify and watch over HTTP, on a real database.

It holds no statistics of its own: every number comes from `keydyn.decisions`.
"""
