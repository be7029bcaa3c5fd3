"""Parameters of the stage ``index``."""

from batchwright.core.names import Name
from batchwright.core.params import Params
from batchwright.retrievers.xtr.index_folder import Kind


class IndexParams(Params):
    """Group ``index.NAME``."""

    run: Name
    """The run of the variant ``xtr`` that encodes the documents: an entry of ``runs``."""
    kind: Kind = "exact"
    """``exact`` keeps every vector; ``compressed`` a sixteenth of the bytes, and a search reads an eighth of them."""
