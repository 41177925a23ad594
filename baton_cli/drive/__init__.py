"""`baton drive`: the mechanical forwarder. It starts a command for each action, tells the controller how it ended, and
asks again; it decides nothing. Its parts: the order, child processes and their groups, records on disk, stopping, the loop.
"""
