"""Types of the requests and answers of the HTTP interface, shared by the service and its client.

Nothing here imports the rest of the service, so that the client can do without it.
"""
