"""Limpet: a personal AI agent that lives on your own machine and never loses anything."""

__version__ = "0.1.0"
