"""Tools of MCP servers: one owner task per server, started when first needed, its tools known from the last time."""
