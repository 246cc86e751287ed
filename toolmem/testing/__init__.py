"""For people who add adapters or test their own agents: contract suites, fakes and a clock to drive.

Everything here is public. `store_contract` needs the extra `testing`.
"""
