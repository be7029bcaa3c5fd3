"""Work that is done domain by domain, in any process, and kept for later runs."""
