"""Behind `toolmem.store.elasticsearch`: how the store protocol is kept on an engine without transactions.

In the order in which a call on its way in meets them: `session` (the turns of this process's writes), `commits`
(documents, compare-and-swap, trimming), `tool_state` (the tool's document), `call_documents`, `cluster` (requests,
retries, bulks). `document_ids` makes ids of any text. `indices` holds the mappings, `generations` whose vectors there
are, `leftovers` and `sweeping` what writers left to be done. A search meets `search` and `search_fields`.
"""
