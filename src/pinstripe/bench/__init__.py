"""Scenarios, clocks, statistics, records."""
