"""The console: pages on which a person sees what the memory knows, and decides.

`app` answers requests: `visitors` says who asks, `views` reads what a page shows (`call_views`,
`tool_views`, `rule_views`; `paging` cuts their rows, `tables` has them whole as CSV), `changes`
does what a form asks for, and `templates` draw it; their `zh.json` has each text in Chinese. Pages
work without JavaScript. All text is untrusted.
"""
