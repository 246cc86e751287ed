"""The console: pages on which a person reads the memory and decides on rules.

`app` answers requests: `visitors` signs people in, `views` reads the values of a page
(`call_views`, `tool_views`, `rule_views`; `paging` cuts their rows, `tables` writes all of them as
CSV), `changes` carries out forms, and `templates` draw the page; `zh.json` has each text in
Chinese. Pages work without JavaScript. All text of calls is untrusted.
"""
