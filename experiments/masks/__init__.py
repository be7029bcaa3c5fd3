"""Rules for false negatives, checked against known equivalents and against cells of the score matrix read by eye.

A cell (q, d') is the query of one pair (q, d) and the document of another pair (q', d'). It is a false negative if d'
answers q. ``verdicts.tsv`` holds the cells that were read.
"""
