"""What all tests share."""

from hypothesis import HealthCheck, settings

# A busy machine is no fault of the code: no test asserts a time.
settings.register_profile("dowise", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dowise")
