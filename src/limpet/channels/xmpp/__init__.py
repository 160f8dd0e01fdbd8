"""XMPP, with slixmpp (extra `xmpp`)."""
