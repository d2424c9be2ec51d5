"""Tries models, and prints a line a model; --write: into the page as well."""

import logging
import sys
import warnings

import kiln

from . import page, trials

SECTIONS = {"--eval": "eval", "--train": "train", "--dynamic": "dynamic"}


def main(arguments):
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    sections = [SECTIONS[each] for each in arguments if each in SECTIONS] or list(SECTIONS.values())
    names = [each for each in arguments if not each.startswith("--")]
    found = {section: {} for section in sections}
    with kiln.Context(cache="off") as context:
        kiln.set_default_context(context)
        for section in sections:
            for name in (each for each in names or page.NAMES[section] if each in page.NAMES[section]):
                told = trials.sizes(name) if section == "dynamic" else trials.trial(name, section == "train")
                found[section][name] = page.line(name, told)
                print(found[section][name], f"{told.error:.1e}", flush=True)
    if "--write" in arguments:
        page.write(found)


main(sys.argv[1:])
