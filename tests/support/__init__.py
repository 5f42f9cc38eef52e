"""Helpers for the tests, by subject: problems, worlds, stores, servers, oracles."""
