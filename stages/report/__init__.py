"""Stage ``report``: shows the results of all other stages on one page. Each section is a module in ``sections``."""
