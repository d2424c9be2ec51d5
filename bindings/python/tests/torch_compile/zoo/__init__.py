"""Architectures of others beside eager: `python -m zoo [--train|--dynamic] [NAME…]`, in this folder's parent."""
