"""How many functions something calls: what it costs, the same on every machine, however busy."""

import sys


def count_calls(what):
    count = 0

    def seen(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        what()
    finally:
        sys.setprofile(before)
    return count
