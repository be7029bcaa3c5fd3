"""A project of one's own: the commands that make it, bring it up to date, and add sources to it."""
