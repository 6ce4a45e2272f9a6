"""Tests of what a release contains (scripts/package-test)."""
