"""Reading text that nobody vouches for: secrets, errors, SQL.

`masking` masks secrets; `secret_names` and `secret_spans` find them. `error_lines` finds the line
that says what went wrong, `stopped_calls` outputs of calls that never ran. `sql` reads SQL. `forms`
is how texts are compared, `patterns` regular expressions, `display` text on one plain line.
"""
