"""Pages of HTML, made from the templates in `templates/`: nothing is loaded from outside, every text is escaped.

rendering       a page, or a part of one (a macro of a template)
numbers         how figures are written
self_contained  what a browser would fetch for a page, which is nothing

A template extends `page.html.j2` and imports its tables, cards and notes from `parts.html.j2`.
"""
