"""The room behind `toolmem.store.elasticsearch`: how the store protocol is kept on an engine without transactions.

In the order in which a call on its way in meets them: `session` (the turns of this process's writes), `tool_commits`
(what is to be done), `commits` (documents, compare-and-swap, trimming), `tool_state` (the tool's document),
`call_documents`, `connection` (requests, retries, bulks). `names` makes ids of any text. `indices` holds the mappings,
`embedders` whose vectors there are, `sweeping` what dead writers left. A search meets `search` and `searchable`.
"""
