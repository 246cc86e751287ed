"""The agents' own programs, offline, against a scripted model: `make test-hosts`."""
