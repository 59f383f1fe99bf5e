"""Exceptions and warnings."""

from ._native import InputError, InternalError

__all__ = ["CommandError", "InputError", "InternalError", "StoppedWarning"]


class StoppedWarning(UserWarning):
    """A run was stopped by Ctrl-C; its results say what is missing (`Results.partial`)."""


class CommandError(RuntimeError):
    """The command `headstack` is not installed, or ended with an error."""
