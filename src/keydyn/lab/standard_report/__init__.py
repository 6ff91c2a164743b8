"""A test report in the order of ISO/IEC 19795-1, with attacks in the terms of ISO/IEC 30107-3, and claims."""
