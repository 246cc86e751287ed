"""For people who add adapters or test their agents: contract suites, fakes, a clock to drive, a real service process.

Everything here is public: `store_contract` for stores, `adapter_contracts` for judges, guidance writers, embedders and
chat models. `store_contract` needs the extra `testing`.
"""
