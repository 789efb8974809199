"""A bookstore over HTTP/2: its stock, the store that serves it, clients, and their visits.

One direction inside: stock, store, clients, visits. `serving` holds the scripts that run inside
the environments of the servers, `clients` those that run inside the environments of the clients.
"""
