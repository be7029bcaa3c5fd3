"""What every part needs: errors, parameters, atomic files, fingerprints, results, paths, the command line's frame."""
