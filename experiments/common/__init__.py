"""What experiments share: small models, and a folder to run stages in."""
