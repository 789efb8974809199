"""The first case: what fetches over HTTPS, the server it asks, and what is seen of both."""
