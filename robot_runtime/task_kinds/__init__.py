"""Kinds of tasks, one folder each; no kind imports another, and the packages below know none of them."""
