"""Tool memory in agent frameworks of Python: one file per framework translates between it and `common`.

    agent = create_agent(model, tools, middleware=[ToolMemMiddleware(mem, conversation="c1")])

Each call is held against the user's rules and against what failed before, kept with the framework's own result or
error, and learned from. Each file needs its framework, which an extra of the same name brings.
"""
