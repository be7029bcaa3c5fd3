"""Looks into training batches: the commands ``batchwright show`` and ``batchwright diff``.

Both must answer at once. When PyArrow converts to or from Python or NumPy, it imports pandas where that is installed,
which takes longer than all the rest; so texts are matched by functions of Arrow, and values leave it as lists.
"""
