"""exit() destroys no static object of the library and its modules: none of them registers a destructor. Each listens to
forks.
Usage: exit_test.py LIBRARY…"""

import subprocess
import sys


def main(*libraries):
    problems = []
    for library in libraries:
        nm = subprocess.run(["nm", "-D", "--undefined-only", library], check=True, capture_output=True, text=True).stdout
        names = {line.split()[-1].partition("@")[0] for line in nm.splitlines()}
        problems += [f"{library} calls {name}" for name in sorted(names & {"__cxa_atexit", "atexit", "on_exit"})]
        if "__register_atfork" not in names:
            problems.append(f"{library} calls no pthread_atfork")
    print("\n".join(problems) or f"{len(libraries)} libraries register nothing")
    return 1 if problems or not libraries else 0


sys.exit(main(*sys.argv[1:]))
