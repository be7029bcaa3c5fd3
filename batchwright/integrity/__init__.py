"""Are artifacts what they were when they were made?"""
