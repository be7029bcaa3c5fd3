"""Stage ``fetch``: copies start models into the project."""
