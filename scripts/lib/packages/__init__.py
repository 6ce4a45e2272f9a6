"""Builders of the packages of a release (scripts/package)."""
