"""Stage ``report``: what all stages made, on one page."""
