"""Other people's asynchronous APIs, as real servers, for `aj check` to be tried on: in an environment of their own."""
