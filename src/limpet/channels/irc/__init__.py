"""IRC, by a small client of its own: what it needs, that a line was taken by the server, the libraries do not tell."""
