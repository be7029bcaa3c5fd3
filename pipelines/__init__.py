"""Apache Beam pipelines: the work that is done record by record.

Importing this package silences Beam; import it before Beam.
"""

import logging

# A worker's exception reaches the driver anyway; Beam would also print its traceback.
logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
# Beam logs this about an optional library, on the root logger, whenever it is imported.
logging.getLogger().addFilter(lambda record: not str(record.msg).startswith("apitools not found"))
