"""Apache Beam pipelines: what is done record by record.

Importing this package keeps Beam quiet; it must come before Beam does.
"""

import logging

# A worker's exception comes back to the driver; Beam would print its traceback beside that.
logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
# Beam says this of an optional library, on the root logger, whenever it is imported.
logging.getLogger().addFilter(lambda record: not str(record.msg).startswith("apitools not found"))
