"""Everything that starts processes on this machine, except the worker itself.

    locks, signals, waiting      what the operating system gives: file locks, signals, time to wait
    server                       one real Valkey or Redis as a child process
    embedded, keep, watch        the store that starts by itself: its users, its keeper, and who sees to the keeper
    gunicorn_conf                how gunicorn serves, for every way to start it
    gunicorn_worker              which requests a process of it answers at once, and which a thread does
    gunicorn_logs                its log as JSON
    preflight, output            what is told before anything starts, and how anything is told
    supervise, up, demo          all processes together, started and stopped in order

Nothing here knows what a job is, except `demo`, which speaks HTTP like any other client.
"""
