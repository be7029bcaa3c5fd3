"""The command ``batchwright``: it looks into batches, hands them on, and keeps projects of one's own.

This package stands above the library, the pipelines, the stages and the trainers: it imports them, and none of them
imports it.
"""
