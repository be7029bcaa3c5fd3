"""Stage ``report``: what the other stages made, on one page. Each section is a module in ``sections``."""
