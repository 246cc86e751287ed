"""For people who add adapters or test their agents: contract suites, fakes, a clock to drive, a real service process.

Everything here is public: `store_contract` for stores (it needs the extra `testing`), `adapter_contracts` for judges,
guidance writers, embedders and chat models, `agent_server` for agents: a scripted model with tools and streaming.
"""
