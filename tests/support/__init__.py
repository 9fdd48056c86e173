"""Tools that the tests of several distributions share."""
