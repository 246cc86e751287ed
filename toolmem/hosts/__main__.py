"""`python -P -m toolmem.hosts AGENT`: what an installed hook runs."""

from toolmem.hosts.hook_process import main

main()
