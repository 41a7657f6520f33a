"""Stands in for the package `langchain_protocol` where there is none.

The SDK takes nothing but names of types from it, to annotate its own code. Every name is `dict` here, which is what all
of these types are when the program runs.
"""


def __getattr__(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return dict
