"""Stage ``pretrain``: pre-trains encoders for runs to start from."""
