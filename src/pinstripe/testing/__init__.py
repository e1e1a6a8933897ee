"""Fakes shipped for tests: fake machines, a fake engine with a known cost, a fake clock."""
