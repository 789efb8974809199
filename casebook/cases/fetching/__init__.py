"""The first case: what fetches over HTTPS, the server it asks, and what is seen of both."""

from casebook.cases.fetching import names as names
