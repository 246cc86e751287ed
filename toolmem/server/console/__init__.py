"""The console: pages on which a person sees what the memory knows, and decides.

`app` answers requests: `visitors` says who asks, `views` reads what a page shows, `changes` does
what a form asks for, and `templates` draw it. Pages work without JavaScript. All text is untrusted.
"""
