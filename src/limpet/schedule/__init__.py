"""What happens by itself, in time: jobs, the ledger of their slots, the heartbeat."""
