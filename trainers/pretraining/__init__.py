"""Pre-training an encoder whose CLS state says what its text says (*Less is More*, arXiv 2102.09206)."""
