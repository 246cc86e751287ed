"""What several packages read alike from text that nobody vouches for. Every reader takes linear time.

chat        messages of a conversation: turns, calls and their answers, texts and arguments
json_values what JSON can carry, checked and cleaned
loopback    addresses that reach nobody but this machine
plain_text  names, values and texts as they may be shown
"""
