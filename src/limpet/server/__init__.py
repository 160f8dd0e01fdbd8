"""The HTTP and WebSocket server of the gateway: health, metrics, and the channel `web`."""
