"""Shared foundations: errors, parameters, atomic files, fingerprints, results, paths and the command-line frame."""
