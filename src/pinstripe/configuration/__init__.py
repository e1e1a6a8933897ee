"""Configuration and workload: plain validated data, and their files."""
