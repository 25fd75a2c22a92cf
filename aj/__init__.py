"""`aj`: the whole contract of an asynchronous HTTP API, for Flask and RQ."""
