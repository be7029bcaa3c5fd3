"""Ways to pre-train an encoder, compared after fine-tuning."""
