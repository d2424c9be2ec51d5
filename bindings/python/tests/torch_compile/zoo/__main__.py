"""Tries models, and prints a line a model; --write: all of them, into the page."""

import logging
import sys
import warnings

import kiln

from . import page, trials

SECTIONS = {"--train": "train", "--dynamic": "dynamic"}


def main(arguments):
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    write = "--write" in arguments
    chosen = [SECTIONS[each] for each in arguments if each in SECTIONS] or (list(page.TITLES) if write else ["eval"])
    names = [each for each in arguments if not each.startswith("--")]
    lines = {}
    with kiln.Context(cache="off") as context:
        kiln.set_default_context(context)
        for section in chosen:
            lines[section] = []
            for name in names or page.NAMES[section]:
                told = trials.sizes(name) if section == "dynamic" else trials.trial(name, section == "train")
                lines[section].append(page.line(name, told))
                print(f"{lines[section][-1]} {told.error:.1e}", flush=True)
    if write:
        page.PATH.write_text(page.text(lines))


main(sys.argv[1:])
