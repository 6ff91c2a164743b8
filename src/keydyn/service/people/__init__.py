"""The service's work on people (enrol, verify, identify, export, erase), independent of HTTP."""
