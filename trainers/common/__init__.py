"""What all trainings share."""
