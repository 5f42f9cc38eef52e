"""Look into the result cache of a server."""


def cached_keys(results):
    """Return the keys of all jobs, the most recently used last."""
    return [*results._jobs]


def unfinished_keys(results):
    """Return the keys of the jobs in progress."""
    return [key for key, job in results._jobs.items() if not job.task.done()]
