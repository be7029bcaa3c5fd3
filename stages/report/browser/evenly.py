"""Choose some of many."""


def evenly(total: int, most: int) -> list[int]:
    """Return at most ``most`` of the numbers below ``total``, evenly spaced from the first one on."""
    count = min(total, most)
    return [number * total // count for number in range(count)]
