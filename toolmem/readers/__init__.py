"""What several packages read alike from text that nobody vouches for. Every reader takes linear time.

plain_text  names, values and texts as they may be shown
"""
