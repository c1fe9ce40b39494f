"""Settings for every test: generated examples are never judged by how long they take."""

from hypothesis import HealthCheck, settings

# a loaded machine must not fail a property: speed is measured in benchmarks/, not asserted in tests
settings.register_profile("callwright", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("callwright")
