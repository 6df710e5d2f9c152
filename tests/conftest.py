"""What holds for every test, wherever it is started from."""

import signal

# A run started in the background may inherit SIGINT as ignored, and every child with it; what we
# say of Ctrl-C is about processes that somebody can interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
