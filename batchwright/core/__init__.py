"""Foundations: errors, parameters, files, fingerprints, arrays on disk, storage, paths, and what commands share."""
