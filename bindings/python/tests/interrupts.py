"""What Ctrl-C ends, tried in a process of its own."""

import os
import signal
import subprocess
import sys
import threading
import time

PRELUDE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background process ignores
def ended(what):
    print("go", flush=True)
    try:
        what()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def ends(before, code, after):
    """Whether Ctrl-C ends within half a second what `code` does after it says "go", as `ended` of a function does; what
    comes `after` is to work as ever."""
    child = subprocess.Popen([sys.executable, "-c", PRELUDE + before + code + after], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline().strip() == "go"
    time.sleep(0.3)
    begin = time.perf_counter()
    child.send_signal(signal.SIGINT)
    limit = threading.Timer(30, child.kill)
    limit.start()
    line = child.stdout.readline().strip()
    taken = time.perf_counter() - begin
    child.stdout.read()
    status = child.wait()
    limit.cancel()
    assert status == 0 and line == "interrupted"
    return taken < 0.5 * max(1, os.getloadavg()[0] / os.cpu_count())  # where others compute, too, it takes longer
