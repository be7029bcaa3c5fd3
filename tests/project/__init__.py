"""Commands for a project of one's own."""
