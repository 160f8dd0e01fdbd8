"""Matrix, with matrix-nio (extra `matrix`, with encryption `matrix-e2e`)."""
