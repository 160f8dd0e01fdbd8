from __future__ import annotations

from hypothesis import HealthCheck, settings

# Time is no property: a busy machine must not fail a test.
settings.register_profile("limpet", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("limpet")
