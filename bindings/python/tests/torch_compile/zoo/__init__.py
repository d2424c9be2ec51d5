"""Architectures of others beside eager: `python -m zoo [--eval] [--train] [--dynamic] [--write] [NAME…]`.

It runs in the folder above. `architectures.py` and `by_hand.py` have the models, `trials.py` runs one, `page.py` is
docs/torch_models.md.
"""
