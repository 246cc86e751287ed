"""What several packages read alike from text that nobody vouches for. Every reader takes linear time.

loopback    addresses that reach nobody but this machine
plain_text  names, values and texts as they may be shown
"""
