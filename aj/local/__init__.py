"""Everything that starts processes on this machine, except the worker itself.

    locks, children, signals     what the operating system gives: file locks, children, signals
    server                       one real Valkey or Redis as a child process
    embedded, keep               the store that starts by itself: those who use it, and its keeper
    gunicorn_conf                how gunicorn serves, for every way to start it
    supervise, up, demo          all processes together, started and stopped in order

Nothing here knows what a job is, except `demo`, which speaks HTTP like any other client.
"""
