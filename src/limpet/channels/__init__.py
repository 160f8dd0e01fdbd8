"""Channels: one module or folder for each chat platform, and what they share (text, splitting, media).

Each kind is a line of `kinds.KINDS`; its library is an extra of its own, imported when the channel is opened.
"""
