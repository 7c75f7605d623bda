"""What holds for every test."""

import signal

# A shell that starts the tests in its background has them and their children ignore Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
