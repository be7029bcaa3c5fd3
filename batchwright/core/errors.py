"""The one exception that a user is meant to read."""


class InputError(Exception):
    """Something the user gave is wrong.

    The message names the file, row or key, says what is wrong and what to change;
    a stage that raises it ends with exit status 1, without traceback and without output.
    """
