"""Read untrusted text: secrets, errors, SQL.

`masking` masks secrets; `secret_names` and `secret_spans` find them. `error_lines` finds the line
that says what went wrong, `stopped_calls` outputs of calls that never ran. `sql` reads SQL. `forms`
normalizes texts to compare them and splits names into words, `patterns` compiles expressions late,
`display` makes safe lines.
"""
