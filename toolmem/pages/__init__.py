"""What the console's pages and the report share: templates, and intervals of shares.

`intervals` has the interval of a share; `html` makes the environment of templates, with filters for
texts, figures and times; `templates/parts.html.j2` draws bars, sparklines and cards; `page.css` is
the style of both.
"""
