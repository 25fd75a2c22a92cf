"""What is measured, one file for each kind of question. Each has `run`, which takes a scene and gives samples."""
