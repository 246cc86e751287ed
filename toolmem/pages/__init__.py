"""What the console's pages and the report are made of.

`figures` counts; `html` makes the environment of their templates, and shows texts and times;
`templates/parts.html.j2` draws bars, sparklines and cards, and `page.css` is the style of both.
"""
