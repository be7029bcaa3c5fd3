"""Stage ``fetch``: start models, brought into the project."""
