"""experiments/cde"""
