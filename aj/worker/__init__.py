"""Everything that runs behind the queue: RQ workers, their work-horses, the deliverer."""
