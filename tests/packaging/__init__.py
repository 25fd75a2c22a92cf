"""What users install: the wheel, alone and with its extras, away from the clone."""
