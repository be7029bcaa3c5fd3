"""The one exception meant for the user to read."""


class InputError(Exception):
    """The user's input is wrong.

    The message names the file, row or key, what is wrong with it and what to change.
    A stage that raises it exits with status 1, prints no traceback and writes no output.
    """
