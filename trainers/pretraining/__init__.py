"""Pre-trains an encoder so that its CLS state summarises the text (*Less is More*, arXiv 2102.09206)."""
