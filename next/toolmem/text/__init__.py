"""Reading text that nobody vouches for. Every reader takes time linear in what it reads.

`forms`: how texts are compared. `sql` and `commands`: statements and command lines. `error_lines`
and `error_classes`: which line tells an error, and of what kind it is. `patterns`: lists of regular
expressions in YAML files. `display`: text on one plain line.
"""
