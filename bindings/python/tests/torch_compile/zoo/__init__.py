"""Architectures of others beside eager: `python -m zoo [--eval] [--train] [--dynamic] [--write] [NAME…]`, in tests/torch_compile.

`architectures.py` and `by_hand.py` have the models, `trials.py` runs one, `page.py` is docs/torch_models.md.
"""
