"""What holds for every test, wherever it is started from."""

import signal

from hypothesis import HealthCheck, settings

# A run started in the background may inherit SIGINT as ignored, and every child with it; what we
# say of Ctrl-C is about processes that somebody can interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes to draw or to check says how busy the machine is, not what is wrong.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
