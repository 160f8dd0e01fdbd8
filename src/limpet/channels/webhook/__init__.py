"""Addresses of the configuration to which answers of jobs are posted."""
