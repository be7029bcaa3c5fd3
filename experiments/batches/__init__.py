"""experiments/batches"""
