class Skipped(Exception):
    """A test that this machine does not allow."""

TESTS = {}
