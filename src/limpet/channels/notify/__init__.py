"""Notifications by `apprise` (extra `notify`): a channel that only sends."""
