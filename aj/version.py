"""The version, in one place. `pyproject.toml` reads it here."""

__version__ = "0.1.0"
USER_AGENT = f"aj/{__version__}"
