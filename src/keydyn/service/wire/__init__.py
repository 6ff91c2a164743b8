"""What is sent and answered over HTTP: one set of types, which routes return and the client parses.

Nothing here imports the rest of keydyn, so that the client needs nothing else of it.
"""
