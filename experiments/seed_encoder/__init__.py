"""experiments/seed_encoder"""
