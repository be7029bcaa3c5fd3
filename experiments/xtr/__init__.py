"""experiments/xtr"""
