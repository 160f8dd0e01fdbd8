"""Plug-ins: Python packages that add tools and hooks, imported only when the owner trusts exactly these files."""
