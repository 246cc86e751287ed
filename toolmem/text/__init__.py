"""Read untrusted text: secrets, errors, SQL.

`masking` masks secrets, which `secret_names` and `secret_spans` find. `error_lines` finds the line
that says what went wrong. `stopped_calls` recognizes outputs of calls that never ran. `sql` reads
SQL. `forms` normalizes texts for comparison and splits names into words. `patterns` compiles
expressions at their first use. `display` makes safe lines.
"""
